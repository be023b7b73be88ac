"""Tests the REST routes with curl, a client of server-sent events, and an OpenAPI fuzzer."""

import json
import os
import subprocess
import tempfile
import unittest

from server import ON_CLUSTER, Case


def events(response, most=None):
    """Returns the next events of a stream as dictionaries of their fields, at most `most`."""
    found, fields = [], {}
    for line in response:
        line = line.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            found.append(fields)
            fields = {}
            if len(found) == most:
                break
    return found


class Rest(Case):
    def curl(self, body):
        """Posts a body to /api/chat with curl, and returns the key of the Job."""
        command = ["curl", "--silent", "--show-error", "--fail-with-body", "--header", f"Authorization: Bearer {self.server.token}"]
        command += ["--header", "Content-Type: application/json", "--data", json.dumps(body), self.server.url + "/api/chat"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)["job"]

    def end(self, job):
        """Follows a Job, and returns its last event."""
        with self.server.open(f"/api/jobs/{job}/events") as response:
            return json.loads(events(response)[-1]["data"])

    def test_the_request_examples_of_seed_000(self):
        directory = self.server.directory
        examples = [
            {
                "goal": "Fix the authentication bug in user service",
                "skillSlug": "sw-dev-tier-1",
                "resources": {"codebase": directory("/Users/dev/myproject"), "docs": directory("/Users/dev/myproject/docs")},
            },
            {
                "goal": "Implement user authentication with JWT",
                "skillSlug": "sw-dev-senior",
                "resources": {
                    "codebase": directory("/home/dev/myapp"),
                    "tests": directory("/home/dev/myapp/tests"),
                    "ci_api": "https://ci.company.com/api",
                },
            },
            # `POST /api/chat { goal, skillSlug }`, and the request without a Skill.
            {"goal": "Greet a customer", "skillSlug": "greeter"},
            {"goal": "Explain it", "projectPath": directory("/home/dev/myapp")},
        ]
        for body in examples:
            job = self.curl(body)
            end = self.end(job)
            self.assertEqual(end["type"], "conversation.finished")
            self.assertEqual(end["data"]["outcome"]["code"], "Succeeded", end)
            status = self.server.get(f"/api/jobs/{job}")
            self.assertEqual((status["goal"], status["skill"]), (body["goal"], body.get("skillSlug", "sw-dev-agent")))
        status, problem = self.refusal("/api/chat", examples[0] | {"resources": {"codebase": "/etc"}})
        self.assertEqual(status, 400, problem)

    def test_a_client_that_connects_again_misses_and_repeats_nothing(self):
        job = self.curl({"goal": "Greet a stream", "skillSlug": "greeter"})
        seen = []
        while True:
            last = {"Last_Event_ID": str(seen[-1])} if seen else {}
            with self.server.open(f"/api/jobs/{job}/events", **last) as response:
                if response.status == 204:
                    break
                seen += [int(event["id"]) for event in events(response, most=2)]
        self.assertEqual(seen, list(range(1, len(seen) + 1)))
        timeline = self.server.get(f"/api/jobs/{job}/projections/timeline")["items"]
        self.assertEqual([event["seq"] for event in timeline], seen)
        names = {event["type"].split(".")[0] for event in timeline}
        self.assertLessEqual({"project", "conversation"}, names)

    def test_an_idempotency_key_starts_one_job(self):
        body = {"goal": "Greet once", "skillSlug": "greeter"}
        keys = set()
        for _ in range(2):
            with self.server.open("/api/chat", body, Idempotency_Key="one") as response:
                keys.add(json.load(response)["job"])
        self.assertEqual(len(keys), 1)
        status, _ = self.refusal("/api/chat", body | {"goal": "Greet twice"}, Idempotency_Key="one")
        self.assertEqual(status, 422)

    def test_refusals(self):
        self.assertEqual(self.refusal("/api/jobs", Authorization="Bearer wrong")[0], 401)
        self.assertEqual(self.refusal("/api/jobs/none")[0], 404)

    @unittest.skipIf(ON_CLUSTER, "the gateway on a cluster does not know its hosts: each request has a token of its own")
    def test_another_host_is_refused(self):
        self.assertEqual(self.refusal("/api/jobs", Host="evil.example")[0], 403)

    @unittest.skipUnless(ON_CLUSTER, "`bloomery serve` has paths of the machine")
    def test_a_path_of_a_machine_is_refused_with_the_bindings(self):
        status, problem = self.refusal("/api/chat", {"goal": "Explain it", "projectPath": "/home/dev/myapp"})
        self.assertEqual(status, 400, problem)
        self.assertIn("claim:NAME", problem["detail"])


class Document(Case):
    """The OpenAPI document. Its many requests use up the rate limit of a user, so it has a server, or an account, of its own."""

    account = "fuzzer"

    def test_the_openapi_document_is_what_the_server_does(self):
        with tempfile.TemporaryDirectory() as work:
            command = [os.environ["SCHEMATHESIS"], "run", self.server.url + "/openapi.json", "--header", f"Authorization: Bearer {self.server.token}"]
            if ON_CLUSTER:
                command += ["--header", f"Bloomery-Namespace: {self.server.namespace}"]
                # A Job without a usable Skill waits on a cluster, and its events have no end. `Rest` reads events.
                command += ["--exclude-path-regex", ".*/events$"]
            # Whether a valid body names a Skill, its resources and an open question, no schema can say.
            command += ["--checks", "all", "--exclude-checks", "positive_data_acceptance"]
            command += ["--rate-limit", "auto", "--request-timeout", "30", "--max-examples", "25", "--seed", "1", "--no-color"]
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=1200)
        self.assertEqual(done.returncode, 0, done.stdout[-20000:] + done.stderr)
