//! Builds scripts for the model of [`crate::model_server`] in Rust.

use serde_json::{Map, Value, json};

/// One conversation of a script.
#[derive(Clone, Debug)]
pub struct Conversation(Value);

/// One answer of the model.
#[derive(Clone, Debug)]
pub struct Turn(Value);

/// Returns a conversation for the requests whose goal contains `goal`.
pub fn conversation(goal: &str, turns: impl IntoIterator<Item = Turn>) -> Conversation {
    let turns: Vec<Value> = turns.into_iter().map(|turn| turn.0).collect();
    Conversation(json!({"name": goal, "match": {"goal": goal}, "turns": turns}))
}

/// Returns a turn in which the model calls one tool.
pub fn call(tool: &str, arguments: Value) -> Turn {
    Turn(json!({"calls": [{"name": tool, "arguments": arguments}]}))
}

/// Returns a turn in which the model calls one tool with this text as its arguments, JSON or not.
pub fn raw_call(tool: &str, arguments: &str) -> Turn {
    Turn(json!({"calls": [{"name": tool, "rawArguments": arguments}]}))
}

/// Returns a turn in which the model answers with a text.
pub fn say(text: &str) -> Turn {
    Turn(json!({"say": text}))
}

/// Returns the conversation of a refund that follows all rules: verify, check, refund, answer with the contract's fields.
pub fn refund_of(order: &str) -> Conversation {
    let (number, amount) = (number(order), price(order));
    conversation(
        order,
        [
            call("verify_identity", json!({"order_id": order, "email": format!("customer-{number}@example.com")}))
                .offered(&["verify_identity", "check_eligibility", "process_refund"]),
            call("check_eligibility", json!({"order_id": order})).after_result("true"),
            call("process_refund", json!({"order_id": order, "amount": amount})).after_result("true"),
            Turn::answer(order).after_result("refunded"),
        ],
    )
}

/// Returns the conversation of a refund before which the model asks whether the order is `broken` or `lost`. It goes on after the reply
/// `lost`.
pub fn refund_after_question(order: &str) -> Conversation {
    let question = json!({"text": "Is it broken, or lost?", "choices": ["broken", "lost"]});
    conversation(
        order,
        [
            call("ask_user", question),
            call("check_eligibility", json!({"order_id": order})).after_result("lost"),
            call("process_refund", json!({"order_id": order, "amount": price(order)})).after_result("true"),
            Turn::answer(order).after_result("refunded"),
        ],
    )
}

/// Returns the price of an order on the server of [`crate::orders`].
pub fn price(order: &str) -> f64 {
    f64::from(1_590 + 200 * number(order)) / 100.0
}

fn number(order: &str) -> u32 {
    order.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

impl Conversation {
    /// Puts a hold before the given turn. The model answers once a test releases the hold.
    #[must_use]
    pub fn hold(self, turn: usize, name: &str) -> Self {
        self.fault(turn, json!({"hold": name}))
    }

    /// Puts a fault before the given turn. The JSON has the form of a script.
    #[must_use]
    pub fn fault(self, turn: usize, fault: Value) -> Self {
        self.change_turn(turn, |turn| turn.fault(fault))
    }

    /// Adds a thought to the first turn. Anthropic's protocol shows the thought and requires the client to return it.
    #[must_use]
    pub fn thinking(self, thought: &str) -> Self {
        self.change_turn(0, |turn| turn.thinking(thought))
    }

    fn change_turn(mut self, turn: usize, change: impl FnOnce(Turn) -> Turn) -> Self {
        let turn = self.0.get_mut("turns").and_then(|turns| turns.get_mut(turn)).expect("the turn exists");
        *turn = change(Turn(turn.take())).0;
        self
    }

    /// Writes each turn in a form that its protocol permits and servers seldom use.
    #[must_use]
    pub fn unusual(mut self) -> Self {
        for turn in self.answers("turns") {
            turn.insert("unusual".to_owned(), json!(true));
        }
        self
    }

    /// Expects a schema in the requests for the answers of intent detection, tool selection and the finalization gate. Call it
    /// after these answers are added.
    #[must_use]
    pub fn expect_schemas(mut self) -> Self {
        for stage in ["intent", "selection", "finalization"] {
            for answer in self.answers(stage) {
                answer.insert("expect".to_owned(), json!({"structured": true}));
            }
        }
        self
    }

    fn answers(&mut self, stage: &str) -> impl Iterator<Item = &mut Map<String, Value>> {
        let answers = self.0.get_mut(stage).and_then(Value::as_array_mut);
        answers.into_iter().flatten().filter_map(Value::as_object_mut)
    }

    /// Limits the conversation to the requests for this model.
    #[must_use]
    pub fn for_model(mut self, name: &str) -> Self {
        let matches = self.0.get_mut("match").and_then(Value::as_object_mut).expect("a conversation matches requests");
        matches.insert("model".to_owned(), json!(name));
        self
    }

    /// Refuses requests with the fields at these paths with dots, to simulate a server that does not support them.
    #[must_use]
    pub fn with_unknown_fields(mut self, fields: &[&str]) -> Self {
        let conversation = self.0.as_object_mut().expect("a conversation is an object");
        conversation.insert("unknownFields".to_owned(), json!(fields));
        self
    }

    /// Answers intent detection with this intent and these entities.
    #[must_use]
    pub fn intent(self, id: &str, entities: Value) -> Self {
        self.stage("intent", json!({"json": {"intent": id, "entities": entities}}))
    }

    /// Answers intent detection with no intent.
    #[must_use]
    pub fn out_of_domain(self) -> Self {
        self.stage("intent", json!({"json": {"intent": null}}))
    }

    /// Adds an answer of the model that judges a draft for the finalization gate.
    #[must_use]
    pub fn ruling(self, ruling: Value) -> Self {
        self.stage("finalization", json!({ "json": ruling }))
    }

    /// Adds a polished answer.
    #[must_use]
    pub fn polished(self, text: &str) -> Self {
        self.stage("polish", json!({ "say": text }))
    }

    /// Adds an answer of a stage. The JSON has the form of a script.
    #[must_use]
    pub fn stage(mut self, stage: &str, answer: Value) -> Self {
        let conversation = self.0.as_object_mut().expect("a conversation is an object");
        let answers = conversation.entry(stage).or_insert(json!([]));
        answers.as_array_mut().expect("answers are a list").push(answer);
        self
    }

    /// Expects a text in the system prompt of the first turn.
    #[must_use]
    pub fn expect_system(self, part: &str) -> Self {
        self.expect_first("systemContains", json!(part))
    }

    /// Expects that no message of the first turn contains any of these texts.
    #[must_use]
    pub fn expect_absent(self, parts: &[&str]) -> Self {
        self.expect_first("noMessageContains", json!(parts))
    }

    fn expect_first(self, what: &str, value: Value) -> Self {
        self.change_turn(0, |turn| turn.expect(what, value))
    }
}

/// Returns a ruling that fails a draft, for [`Conversation::ruling`].
pub fn fails(code: &str, detail: &str, action: &str) -> Value {
    json!({"passed": false, "score": 0.3, "reasons": [{"code": code, "detail": detail}], "suggested_action": action})
}

impl Turn {
    /// Returns the answer that ends a refund, with the fields of the contract.
    pub fn answer(order: &str) -> Self {
        say(&format!(
            "Order {order} is refunded.\n```json\n{}\n```",
            json!({"order_id": order, "status": "refunded", "next_steps": ["The money arrives within 5 days."]})
        ))
    }

    /// Adds a tool call to the same turn.
    #[must_use]
    pub fn and_call(mut self, tool: &str, arguments: Value) -> Self {
        let calls = self.0.get_mut("calls").and_then(Value::as_array_mut).expect("the turn has calls");
        calls.push(json!({"name": tool, "arguments": arguments}));
        self
    }

    /// Puts a fault before the turn. The JSON has the form of a script.
    #[must_use]
    pub fn fault(mut self, fault: Value) -> Self {
        let turn = self.0.as_object_mut().expect("a turn is an object");
        let faults = turn.entry("faults").or_insert(json!([]));
        faults.as_array_mut().expect("faults are a list").push(fault);
        self
    }

    /// Adds a thought. Anthropic's protocol shows the thought and requires the client to return it.
    #[must_use]
    pub fn thinking(mut self, thought: &str) -> Self {
        self.0.as_object_mut().expect("a turn is an object").insert("thinking".to_owned(), json!(thought));
        self
    }

    /// Adds a redacted thought with this data. Only Anthropic's protocol has redacted thoughts.
    #[must_use]
    pub fn redacted_thinking(mut self, text: &str) -> Self {
        self.0.as_object_mut().expect("a turn is an object").insert("redactedThinking".to_owned(), json!(text));
        self
    }

    /// Ends the answer of the turn early, for this reason.
    #[must_use]
    pub fn with_stop_reason(mut self, reason: &str) -> Self {
        self.0.as_object_mut().expect("a turn is an object").insert("stop".to_owned(), json!(reason));
        self
    }

    /// Sets the tokens that the turn reports.
    #[must_use]
    pub fn with_usage(mut self, prompt_tokens: u64, completion_tokens: u64) -> Self {
        let usage = json!({"promptTokens": prompt_tokens, "completionTokens": completion_tokens});
        self.0.as_object_mut().expect("a turn is an object").insert("usage".to_owned(), usage);
        self
    }

    /// Expects `part` in the last tool result.
    #[must_use]
    pub fn after_result(self, part: &str) -> Self {
        self.expect("lastToolResultContains", json!(part))
    }

    /// Expects `part` in the last message of the user.
    #[must_use]
    pub fn after_feedback(self, part: &str) -> Self {
        self.expect("lastUserMessageContains", json!(part))
    }

    /// Expects these tools in the request.
    #[must_use]
    pub fn offered(self, tools: &[&str]) -> Self {
        self.expect("toolsOffered", json!(tools))
    }

    /// Expects none of these tools in the request.
    #[must_use]
    pub fn not_offered(self, tools: &[&str]) -> Self {
        self.expect("toolsNotOffered", json!(tools))
    }

    /// Expects that no message contains `part`.
    #[must_use]
    pub fn expect_absent(self, part: &str) -> Self {
        self.expect("noMessageContains", json!([part]))
    }

    fn expect(mut self, what: &str, value: Value) -> Self {
        let turn = self.0.as_object_mut().expect("a turn is an object");
        let expect = turn.entry("expect").or_insert(json!({}));
        expect.as_object_mut().expect("`expect` is an object").insert(what.to_owned(), value);
        self
    }
}

/// Returns the script of these conversations.
///
/// # Panics
/// The model server does not accept the script.
pub fn script_text(conversations: &[Conversation]) -> String {
    let conversations: Vec<&Value> = conversations.iter().map(|conversation| &conversation.0).collect();
    let text = json!({ "conversations": conversations }).to_string();
    if let Err(error) = crate::model_server::script::Script::from_yaml(&text) {
        panic!("the model server does not accept this script: {error}\n{text}");
    }
    text
}
