"""Tests the scripted model server with OpenAI's SDK."""

import time

import openai
import pydantic

from server import KEY, TOOLS, Case

SYSTEM = {"role": "system", "content": "You are a Support Agent."}


class Order(pydantic.BaseModel):
    order_id: str
    amount: float


class Openai(Case):
    def setUp(self):
        super().setUp()
        self.client = self.with_key(KEY)
        self.addCleanup(self.client.close)

    def with_key(self, key, **options):
        return openai.OpenAI(base_url=f"{self.server.url}/v1", api_key=key, **({"max_retries": 0} | options))

    def request(self, goal, *history, tools=False, **options):
        request = {"model": "scripted", "user": "job-1", "messages": [SYSTEM, {"role": "user", "content": goal}, *history]}
        if tools:
            request["tools"] = [
                {"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in TOOLS.items()
            ]
        return request | options

    def ask(self, *arguments, client=None, **options):
        return (client or self.client).chat.completions.create(**self.request(*arguments, **options))

    def test_plain(self):
        answer = self.ask("Greet me")
        self.assertEqual(answer.choices[0].message.content, "Grüße, 訂單 17 🌸!")
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual((answer.usage.prompt_tokens, answer.usage.completion_tokens), (1200, 45))
        self.assertEqual(answer.usage.prompt_tokens_details.cached_tokens, 1000)
        self.assertTrue(answer._request_id.startswith("req_"))
        self.assert_no_violations()

    def test_stream(self):
        with self.client.chat.completions.stream(
            **self.request("Greet me", stream_options={"include_usage": True})
        ) as stream:
            text = "".join(event.delta for event in stream if event.type == "content.delta")
            whole = stream.get_final_completion()
        self.assertEqual(text, "Grüße, 訂單 17 🌸!")
        self.assertEqual(whole.choices[0].message.content, text)
        self.assertEqual(whole.usage.total_tokens, 1245)
        self.assert_no_violations()

    def round_trip(self, message):
        calls = message.tool_calls
        self.assertEqual([call.function.name for call in calls], ["verify_identity", "check_eligibility"])
        results = [{"role": "tool", "tool_call_id": call.id, "content": "eligible"} for call in calls]
        # Users of the SDK send the message back without its null fields.
        said = {"role": "assistant", "content": message.content}
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
            for call in calls
        ]
        last = self.ask("Refund order A-17", said, *results, tools=True)
        self.assertEqual(last.choices[0].message.content, "It is refunded.")
        self.assert_no_violations()

    def test_tools(self):
        answer = self.ask("Refund order A-17", tools=True).choices[0]
        self.assertEqual((answer.finish_reason, answer.message.content), ("tool_calls", "One moment."))
        self.round_trip(answer.message)

    def test_tools_streamed(self):
        with self.client.chat.completions.stream(**self.request("Refund order A-17", tools=True)) as stream:
            for _ in stream:
                pass
            answer = stream.get_final_completion().choices[0]
        self.assertEqual(answer.finish_reason, "tool_calls")
        self.round_trip(answer.message)

    def test_structured(self):
        answer = self.client.chat.completions.parse(**self.request("Which order?", response_format=Order))
        self.assertEqual(answer.choices[0].message.parsed, Order(order_id="A-17", amount=49.9))
        self.assert_no_violations()

    def test_structured_streamed(self):
        with self.client.chat.completions.stream(**self.request("Which order?", response_format=Order)) as stream:
            answer = stream.get_final_completion()
        self.assertEqual(answer.choices[0].message.parsed.order_id, "A-17")

    def test_a_server_that_knows_no_schema(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.parse(
                **self.request("Which order on an older server?", response_format=Order)
            )
        self.assertIn("Unrecognized request argument supplied: response_format", str(caught.exception))
        self.assertEqual(self.ask("Which order on an older server?").choices[0].message.content, "A-17")
        self.assert_no_violations()

    def test_the_sdk_reads_unusual_answers(self):
        for answer in [
            self.ask("Say it in your own way", tools=True),
            self.streamed("Say it in your own way", tools=True),
        ]:
            self.assertEqual(answer.choices[0].message.content, "As you like it.")
            self.assertEqual(answer.choices[0].message.tool_calls[0].function.arguments, '{"order_id":"A-17"}')

    def streamed(self, goal, **options):
        with self.client.chat.completions.stream(**self.request(goal, **options)) as stream:
            return stream.get_final_completion()

    def test_finish_reasons(self):
        self.assertEqual(self.ask("Say very much").choices[0].finish_reason, "length")
        refused = self.ask("Do harm", user="job-2").choices[0].message
        self.assertEqual((refused.content, refused.refusal), (None, "I will not."))

    def test_errors(self):
        cases = {
            "Read all of it": (openai.BadRequestError, "context_length_exceeded"),
            "Fail with 400": (openai.BadRequestError, None),
            "Fail with 403": (openai.PermissionDeniedError, None),
            "Fail with 429": (openai.RateLimitError, "rate_limit_exceeded"),
            "Fail with 500": (openai.InternalServerError, None),
        }
        for goal, (kind, code) in cases.items():
            with self.subTest(goal), self.assertRaises(kind) as caught:
                self.ask(goal, user=goal)
            self.assertIs(type(caught.exception), kind)
            self.assertEqual(caught.exception.code, code)
            self.assertTrue(caught.exception.request_id.startswith("req_"))

    def test_wrong_key_and_unknown_model(self):
        with self.assertRaises(openai.AuthenticationError) as caught:
            self.ask("Greet me", client=self.with_key("sk-other"))
        self.assertEqual(caught.exception.code, "invalid_api_key")
        with self.assertRaises(openai.NotFoundError) as caught:
            self.ask("Greet me", model="other")
        self.assertEqual(caught.exception.code, "model_not_found")
        self.assertEqual([model.id for model in self.client.models.list()], ["scripted"])

    def test_the_error_of_a_bad_request_names_the_cause(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.ask("Greet me", {"role": "tool", "tool_call_id": "c1", "content": "ok"})
        self.assertIn("no call `c1` is waiting for a result", str(caught.exception))

    def test_retries_wait_for_the_time_in_retry_after(self):
        for goal in ["Hurry once", "Hurry at a date"]:
            begin = time.monotonic()
            answer = self.ask(goal, user=goal, client=self.with_key(KEY, max_retries=1))
            self.assertEqual(answer.choices[0].message.content, "Now.")
            self.assertEqual(self.asked(goal), 2)
            # Without Retry-After, the SDK would wait half a second.
            self.assertGreaterEqual(time.monotonic() - begin, 0.9)
        self.assert_no_violations()

    def test_streams_that_fail(self):
        with self.assertRaises(openai.APIError) as caught:
            list(self.ask("Fail on the way", stream=True))
        self.assertEqual(caught.exception.type, "server_error")
        with self.assertRaises(openai.APIConnectionError):
            list(self.ask("Break off", stream=True, user="job-2"))

    def test_a_server_that_never_answers(self):
        with self.assertRaises(openai.APITimeoutError):
            self.ask("Never answer", client=self.with_key(KEY, timeout=0.5))
