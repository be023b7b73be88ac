"""Runs the server of mcp-server-time over streamable HTTP. By default, that server uses stdio."""

import sys

from mcp_server_time.server import create_server

create_server("UTC").run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
