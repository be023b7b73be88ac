"""An MCP server over standard input and output, of the older era of the protocol. It uses only the standard library."""

import json
import platform
import sys

TOOL = {
    "name": "track_order",
    "description": "Tells where an order is",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"], "additionalProperties": False},
}


def answer(request):
    """Returns the member of the response to a request."""
    if request["method"] == "initialize":
        server = {"name": "python", "version": platform.python_version()}
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}}
    if request["method"] == "tools/list":
        return {"result": {"tools": [TOOL]}}
    if request["method"] == "tools/call":
        text = f"Order {request['params']['arguments']['order_id']} is with the carrier, says python3 {platform.python_version()}"
        return {"result": {"content": [{"type": "text", "text": text}]}}
    if request["method"] == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": "unknown method"}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}), flush=True)
