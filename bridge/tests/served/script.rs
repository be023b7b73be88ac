//! Stdio servers that are shell scripts.

/// A server with sessions and one tool, `act`. Calling the tool runs the commands in `$1`. `$id` is the id of the call.
pub(crate) const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
echo "started" >&2
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '{"tools":[{"name":"act","description":"Does act","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) eval "$1" ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id" ;;
  esac
done
"#;

/// The command that answers a call with the text `done`.
pub(crate) const ANSWER_DONE: &str = r#"answer '{"content":[{"type":"text","text":"done"}]}'"#;

/// Returns the command line of a server with sessions.
pub(crate) fn server(act: &str) -> Vec<String> {
    ["sh", "-c", SERVER, "sh", act].map(str::to_owned).to_vec()
}

/// Returns the command line of a server that only speaks the newer era. It runs `begin` at each start.
pub(crate) fn stateless_server(begin: &str, act: &str) -> Vec<String> {
    let server = SERVER
        .replacen(
            r#"*'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;"#,
            r#"*'"method":"server/discover"'*) answer '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}' ;;"#,
            1,
        )
        .replacen(r#"answer '{"tools""#, r#"answer '{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools""#, 1);
    ["sh", "-c", &format!("{begin}\n{server}"), "sh", act].map(str::to_owned).to_vec()
}
