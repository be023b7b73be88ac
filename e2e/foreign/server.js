// An MCP server over standard input and output, of the newer era of the protocol: it has no sessions, and refuses `initialize`. It uses
// only what Node contains.
const tool = {
  name: "track_order",
  description: "Tells where an order is",
  annotations: { readOnlyHint: true },
  inputSchema: { type: "object", properties: { order_id: { type: "string" } }, required: ["order_id"], additionalProperties: false },
};
const cached = { resultType: "complete", ttlMs: 0, cacheScope: "private" };

// Returns the member of the response to a request.
function answer({ method, params }) {
  switch (method) {
    case "server/discover":
      return { result: { ...cached, supportedVersions: ["2026-07-28"], capabilities: { tools: {} } } };
    case "tools/list":
      return { result: { ...cached, tools: [tool] } };
    case "tools/call": {
      const text = `Order ${params.arguments.order_id} is with the carrier, says node ${process.versions.node}`;
      return { result: { resultType: "complete", content: [{ type: "text", text }] } };
    }
    default:
      return { error: { code: -32601, message: "unknown method" } };
  }
}

require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.id !== undefined && message.method) {
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, ...answer(message) })}\n`);
  }
});
