"""Tests the scripted model server with Anthropic's SDK."""

import time

import anthropic
import pydantic

from server import KEY, TOOLS, Case


class Order(pydantic.BaseModel):
    order_id: str
    amount: float


class Anthropic(Case):
    def setUp(self):
        super().setUp()
        self.client = self.with_key(KEY)
        self.addCleanup(self.client.close)

    def with_key(self, key, **options):
        return anthropic.Anthropic(base_url=self.server.url, api_key=key, **({"max_retries": 0} | options))

    def request(self, goal, *history, tools=False, user="job-1", **options):
        request = {
            "model": "scripted",
            "max_tokens": 4096,
            "system": "You are a Support Agent.",
            "metadata": {"user_id": user},
            "messages": [{"role": "user", "content": goal}, *history],
        }
        if tools:
            request["tools"] = [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()]
        return request | options

    def ask(self, *arguments, client=None, **options):
        return (client or self.client).messages.create(**self.request(*arguments, **options))

    def streamed(self, *arguments, **options):
        with self.client.messages.stream(**self.request(*arguments, **options)) as stream:
            return stream.get_final_message()

    def test_plain(self):
        answer = self.ask("Greet me")
        self.assertEqual([block.text for block in answer.content], ["Grüße, 訂單 17 🌸!"])
        self.assertEqual(answer.stop_reason, "end_turn")
        usage = answer.usage
        self.assertEqual((usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens), (200, 1000, 45))
        self.assertTrue(answer._request_id.startswith("req_"))
        self.assert_no_violations()

    def test_an_older_api_version(self):
        older = {"extra_headers": {"anthropic-version": "2023-06-01", "x-api-key": KEY}}
        answer = self.client.messages.create(**self.request("Greet me"), extra_body={"temperature": 0.1}, **older)
        self.assertEqual(answer.stop_reason, "end_turn")
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.client.messages.create(**self.request("Greet me"), extra_body={"temperature": 0.1})
        self.assertIn("temperature: Extra inputs are not permitted", str(caught.exception))

    def test_stream(self):
        with self.client.messages.stream(**self.request("Greet me")) as stream:
            text = "".join(stream.text_stream)
            whole = stream.get_final_message()
        self.assertEqual(text, "Grüße, 訂單 17 🌸!")
        self.assertEqual((whole.content[0].text, whole.stop_reason), (text, "end_turn"))
        self.assertEqual((whole.usage.input_tokens, whole.usage.output_tokens), (200, 45))
        self.assert_no_violations()

    def round_trip(self, answer):
        kinds = [block.type for block in answer.content]
        self.assertEqual(kinds, ["thinking", "text", "tool_use", "tool_use"])
        self.assertEqual(answer.content[0].thinking, "It arrived broken. Who asks?")
        self.assertEqual(answer.content[2].input, {"order_id": "A-17", "note": 'zoë\n"broken"'})
        self.assertEqual(answer.stop_reason, "tool_use")
        calls = [block for block in answer.content if block.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "eligible"} for call in calls]
        history = [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
        last = self.ask("Refund order A-17", *history, tools=True)
        self.assertEqual(last.content[0].text, "It is refunded.")
        self.assert_no_violations()
        return history

    def test_tools(self):
        self.round_trip(self.ask("Refund order A-17", tools=True))

    def test_tools_streamed(self):
        self.round_trip(self.streamed("Refund order A-17", tools=True))

    def test_thinking_that_was_altered(self):
        said, results = self.round_trip(self.ask("Refund order A-17", tools=True))
        said["content"][0] = said["content"][0].model_copy(update={"thinking": "It is fine."})
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask("Refund order A-17", said, results, tools=True, user="job-2")
        self.assertIn("Invalid `signature` in `thinking` block", str(caught.exception))

    def test_structured(self):
        answer = self.client.messages.parse(**self.request("Which order?", output_format=Order))
        self.assertEqual(answer.parsed_output, Order(order_id="A-17", amount=49.9))
        self.assert_no_violations()

    def test_structured_streamed(self):
        with self.client.messages.stream(**self.request("Which order?", output_format=Order)) as stream:
            answer = stream.get_final_message()
        self.assertEqual(answer.parsed_output.order_id, "A-17")

    def test_a_server_that_knows_no_schema(self):
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.client.messages.parse(**self.request("Which order on an older server?", output_format=Order))
        self.assertIn("output_config.format: Extra inputs are not permitted", str(caught.exception))
        self.assert_no_violations()

    def test_the_sdk_reads_unusual_answers(self):
        goal = "Say it in your own way"
        for answer in [self.ask(goal, tools=True), self.streamed(goal, tools=True)]:
            self.assertEqual(answer.content[0].text, "As you like it.")
            self.assertEqual(answer.content[1].input, {"order_id": "A-17"})

    def test_stop_reasons(self):
        self.assertEqual(self.ask("Say very much").stop_reason, "max_tokens")
        refused = self.ask("Do harm", user="job-2")
        self.assertEqual((refused.stop_reason, refused.stop_details.type), ("refusal", "refusal"))

    def test_cache(self):
        kept = [{"type": "text", "text": "You are a Support Agent.", "cache_control": {"type": "ephemeral"}}]
        first = self.ask("Remember this", system=kept).usage
        again = self.ask("Remember this", system=kept).usage
        self.assertGreater(first.cache_creation_input_tokens, 0)
        self.assertEqual(again.cache_read_input_tokens, first.cache_creation_input_tokens)
        self.assert_no_violations()

    def test_errors(self):
        cases = {
            "Read all of it": (anthropic.BadRequestError, "invalid_request_error"),
            "Fail with 400": (anthropic.BadRequestError, "invalid_request_error"),
            "Fail with 403": (anthropic.PermissionDeniedError, "permission_error"),
            "Fail with 429": (anthropic.RateLimitError, "rate_limit_error"),
            "Fail with 500": (anthropic.InternalServerError, "api_error"),
            "Fail with 529": (anthropic.OverloadedError, "overloaded_error"),
        }
        for goal, (kind, error_type) in cases.items():
            with self.subTest(goal), self.assertRaises(kind) as caught:
                self.ask(goal, user=goal)
            self.assertIs(type(caught.exception), kind)
            self.assertEqual(caught.exception.body["error"]["type"], error_type)
            self.assertTrue(caught.exception.request_id.startswith("req_"))

    def test_wrong_key_and_unknown_model(self):
        with self.assertRaises(anthropic.AuthenticationError):
            self.ask("Greet me", client=self.with_key("sk-other"))
        with self.assertRaises(anthropic.NotFoundError):
            self.ask("Greet me", model="other")
        self.assertEqual([model.id for model in self.client.models.list()], ["scripted"])

    def test_the_error_of_a_bad_request_names_the_cause(self):
        call = {"type": "tool_use", "id": "c1", "name": "verify_identity", "input": {}}
        history = [{"role": "assistant", "content": [call]}, {"role": "user", "content": "well?"}]
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask("Greet me", *history, tools=True)
        self.assertIn("without `tool_result` blocks immediately after: c1", str(caught.exception))

    def test_retries_wait_for_the_time_in_retry_after(self):
        for goal in ["Hurry once", "Hurry at a date"]:
            begin = time.monotonic()
            answer = self.ask(goal, user=goal, client=self.with_key(KEY, max_retries=1))
            self.assertEqual(answer.content[0].text, "Now.")
            self.assertEqual(self.asked(goal), 2)
            # Without Retry-After, the SDK would wait half a second.
            self.assertGreaterEqual(time.monotonic() - begin, 0.9)
        self.assert_no_violations()

    def test_streams_that_fail(self):
        with self.assertRaises(anthropic.APIStatusError) as caught:
            self.streamed("Fail on the way")
        self.assertEqual(caught.exception.body["error"]["type"], "overloaded_error")
        with self.assertRaises(Exception) as caught:
            self.streamed("Break off", user="job-2")
        self.assertIn("closed connection", str(caught.exception))

    def test_a_server_that_never_answers(self):
        with self.assertRaises(anthropic.APITimeoutError):
            self.ask("Never answer", client=self.with_key(KEY, timeout=0.5))
