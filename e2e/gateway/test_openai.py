"""Tests the OpenAI front with OpenAI's SDKs for Python and Node.js."""

import os
import subprocess

import openai

from server import HERE, Case

GREETING = "Grüße, 訂單 17 🌸!"


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


class Openai(Case):
    def setUp(self):
        self.client = self.with_key(self.server.token)
        self.addCleanup(self.client.close)

    def with_key(self, key):
        return openai.OpenAI(base_url=f"{self.server.url}/v1", api_key=key, max_retries=0)

    def ask(self, *messages, **options):
        messages = [user(text) if isinstance(text, str) else text for text in messages]
        return self.client.chat.completions.create(**({"model": "greeter", "messages": messages} | options))

    def goals(self):
        return [job["goal"] for job in self.server.get("/api/jobs")["items"]]

    def test_models(self):
        models = [model.id for model in self.client.models.list()]
        self.assertIn("greeter", models)

    def test_plain(self):
        answer = self.ask("Greet me", temperature=0.1, max_tokens=100)
        self.assertEqual(answer.choices[0].message.content, GREETING)
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertGreaterEqual(answer.usage.prompt_tokens, 1200)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)

    def test_stream(self):
        messages = [{"role": "system", "content": "Be brief."}, user("Greet us")]
        options = {"model": "greeter", "messages": messages, "stream_options": {"include_usage": True}}
        with self.client.chat.completions.stream(**options) as stream:
            text = "".join(event.delta for event in stream if event.type == "content.delta")
            whole = stream.get_final_completion()
        self.assertEqual((text, whole.choices[0].message.content), (GREETING, GREETING))
        self.assertGreaterEqual(whole.usage.prompt_tokens, 1200)

    def test_a_chat_continues(self):
        first = self.ask("Greet everybody").choices[0].message
        second = self.ask("Greet everybody", first.to_dict(), user("Again, please"))
        self.assertEqual(second.choices[0].message.content, "Hello again.")
        # A new Job would have the whole chat in its goal.
        self.assertIn("Again, please", self.goals())

    def test_a_question_is_answered(self):
        asked = self.ask("Ask me").choices[0].message.content
        self.assertTrue(asked.startswith("Whom?"), asked)
        answer = self.ask("Ask me", assistant(asked), user("Jane"))
        self.assertEqual(answer.choices[0].message.content, "Hello Jane.")
        self.assertEqual(self.goals().count("Ask me"), 1)

    def test_refusals(self):
        tool = {"type": "function", "function": {"name": "t", "parameters": {}}}
        with self.assertRaisesRegex(openai.BadRequestError, "tools"):
            self.ask("Greet me", tools=[tool])
        with self.assertRaisesRegex(openai.BadRequestError, "n is not supported"):
            self.ask("Greet me", n=2)
        with self.assertRaises(openai.NotFoundError):
            self.ask("Greet me", model="nobody")
        with self.with_key("wrong") as client, self.assertRaises(openai.AuthenticationError):
            client.models.list()

    def test_node(self):
        environment = os.environ | {"GATEWAY_URL": self.server.url, "GATEWAY_TOKEN": self.server.token}
        program = ["node", os.path.join(HERE, "openai.cjs")]
        done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
