# shellcheck shell=bash
# Runs long commands for a person who waits: a spinner with the elapsed time, and output that goes to a log. The scripts in hack/
# use this file too.

# spinning TEXT COMMAND...: runs an external command. Meanwhile, a terminal shows the text and the elapsed time.
spinning() {
  local text=$1 code=0 spinner=
  shift
  if [ -t 2 ]; then
    spin "$text" "$BASHPID" &
    spinner=$!
  fi
  "$@" || code=$?
  if [ -n "$spinner" ]; then
    kill "$spinner" 2>/dev/null || true
    wait "$spinner" 2>/dev/null || true
    printf '\r\033[K' >&2
  fi
  return "$code"
}

# spin TEXT PID: draws the spinner until the shell PID ends. A background process ignores Ctrl-C, so the shell may end first.
spin() {
  local text=$1 shell=$2 began=$SECONDS marks='-+x*' i
  for ((i = 0; ; i++)); do
    kill -0 "$shell" 2>/dev/null || return 0
    printf '\r\033[K%s %4d s  %s' "${marks:i%4:1}" $((SECONDS - began)) "$text" >&2
    sleep 0.2
  done
}

# logged LOG TEXT COMMAND...: runs an external command like `spinning`, with its output in the file LOG. If the command fails, the
# end of the log and its path are printed.
logged() {
  local log=$1 text=$2 code=0
  shift 2
  mkdir -p "$(dirname "$log")"
  spinning "$text" into "$log" "$@" || code=$?
  if [ "$code" != 0 ]; then
    tail -20 "$log" >&2
    printf '%s failed; the whole output: %s\n' "$text" "$log" >&2
  fi
  return "$code"
}
into() { "${@:2}" </dev/null >"$1" 2>&1; }

# apt_get LOGS NAME ARGUMENT...: runs apt-get as root, with its output in LOGS/NAME.log. Callers wait for one another.
apt_get() {
  local logs=$1 name=$2 sudo=()
  shift 2
  # sudo asks for a password before the spinner draws over its question.
  if [ "$(id -u)" != 0 ]; then sudo true || return; sudo=(sudo); fi
  logged "$logs/$name.log" "apt-get $*" \
    flock "$logs/apt.lock" "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@"
}
