"""Runs the scripted model server for the tests."""

import json
import os
import subprocess
import tempfile
import unittest
import urllib.request

KEY = "sk-scripted"
SCRIPT = os.path.join(os.path.dirname(__file__), "script.yaml")
TOOLS = {
    "verify_identity": {
        "type": "object",
        "properties": {"order_id": {"type": "string"}, "note": {"type": "string"}},
    },
    "check_eligibility": {"type": "object", "properties": {"order_id": {"type": "string"}}},
}


class Server:
    """A server process on a free port. The environment variable MODEL_SERVER names the program."""

    def __init__(self):
        self.key = tempfile.NamedTemporaryFile("w", prefix="bloomery-sdk-key-")
        self.key.write(KEY)
        self.key.flush()
        command = [os.environ["MODEL_SERVER"], "--address", "127.0.0.1", "--port", "0", "--log-format", "json"]
        command += ["--script", SCRIPT, "--api-key-file", self.key.name]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.url = self._url()

    def _url(self):
        for line in self.process.stderr:
            fields = json.loads(line).get("fields", {}) if line.startswith("{") else {}
            if fields.get("message") == "listening":
                return "http://" + fields["addr"]
        raise AssertionError("the model server ended before it listened")

    def control(self, path):
        with urllib.request.urlopen(f"{self.url}/control/{path}") as answer:
            return json.load(answer)

    def stop(self):
        self.process.terminate()
        # Reads the rest of its log: with a full pipe, the process could not end.
        self.process.communicate()
        self.key.close()


class Case(unittest.TestCase):
    """A test with its own server, so that the counts include no requests of other tests."""

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)

    def asked(self, user="job-1"):
        """Returns the number of requests of the main loop."""
        return self.server.control("requests")["users"][user]["requests"]

    def assert_no_violations(self):
        found = self.server.control("violations")
        self.assertEqual(found["total"], 0, found)
