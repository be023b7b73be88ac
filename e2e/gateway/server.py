"""The server of the tests: `bloomery serve` with the scripted model, or the gateway on a cluster."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

HERE = os.path.dirname(__file__)
SKILLS = ["greeter", "sw-dev-tier-1"]
# hack/gateway-test --cluster installs the gateway on a cluster, and sets this variable.
ON_CLUSTER = "GATEWAY_URL" in os.environ


def read_until(stream, found):
    """Returns the first result of `found` for the lines so far."""
    text = ""
    for line in stream:
        text += line
        if result := found(text):
            return result
    raise AssertionError("the server ended before it listened: " + text)


class Server:
    """A server with its URL, and the token of an account."""

    def open(self, path, body=None, **headers):
        """Returns the response to a request."""
        headers = {"Authorization": "Bearer " + self.token} | {name.replace("_", "-"): value for name, value in headers.items()}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        return urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=60)

    def get(self, path):
        with self.open(path) as response:
            return json.load(response)


class ClusterServer(Server):
    """The gateway on a cluster, for one of the accounts that hack/gateway-test creates."""

    def __init__(self, account):
        self.url = os.environ["GATEWAY_URL"]
        self.token = os.environ["GATEWAY_TOKEN_" + account.upper()]
        self.namespace = os.environ["GATEWAY_NAMESPACE_" + account.upper()]

    def directory(self, path):
        """Returns the binding of the claim for a directory of a machine."""
        return "writable-claim:" + os.path.basename(path)

    def stop(self):
        pass


class LocalServer(Server):
    """A gateway on a free port, with a memory and a root of its own. GATEWAY and MODEL_SERVER name the programs."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="bloomery-gateway-")
        self.root = os.path.join(self.dir, "projects")
        os.mkdir(self.root)
        for skill in SKILLS:
            memory = os.path.join(self.dir, "memory", skill)
            os.makedirs(memory)
            shutil.copy(os.path.join(HERE, skill + ".yaml"), os.path.join(memory, "skill.yaml"))
        command = [os.environ["MODEL_SERVER"], "--address", "127.0.0.1", "--port", "0", "--log-format", "json"]
        command += ["--script", os.path.join(HERE, "script.yaml")]
        self.model = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        model_url = read_until(self.model.stderr, self._address_of_model)
        self._drain(self.model)
        command = [os.environ["GATEWAY"], "serve", "--port", "0", "--root", self.root]
        command += ["--memory", os.path.join(self.dir, "memory"), "--model", "scripted", "--model-url", model_url + "/v1"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"NO_COLOR": "1"})
        self.url, self.token = read_until(self.process.stderr, self._address_of_gateway)
        self._drain(self.process)

    @staticmethod
    def _address_of_model(text):
        for line in text.splitlines():
            fields = json.loads(line).get("fields", {}) if line.startswith("{") else {}
            if fields.get("message") == "listening":
                return "http://" + fields["addr"]
        return None

    @staticmethod
    def _address_of_gateway(text):
        url, token = re.search(r"http://127\.0\.0\.1:\d+", text), re.search(r"\b[0-9a-f]{64}\b", text)
        return (url.group(), token.group()) if url and token else None

    @staticmethod
    def _drain(process):
        # With a full pipe, the process could not go on.
        subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)

    def directory(self, path):
        """Creates a directory below the root, so that a test does not write to those of a user. Returns its path."""
        path = self.root + path
        os.makedirs(path, exist_ok=True)
        return path

    def stop(self):
        for process in (self.process, self.model):
            process.terminate()
            process.wait(30)
            process.stderr.close()
        shutil.rmtree(self.dir)


class Case(unittest.TestCase):
    """Tests with one server, or with one account of the gateway on a cluster."""

    account = "client"

    @classmethod
    def setUpClass(cls):
        cls.server = ClusterServer(cls.account) if ON_CLUSTER else LocalServer()
        cls.addClassCleanup(cls.server.stop)

    def refusal(self, path, body=None, **headers):
        """Returns the status and the body of a refused request."""
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.server.open(path, body, **headers)
        with caught.exception as response:
            return response.code, json.load(response)
