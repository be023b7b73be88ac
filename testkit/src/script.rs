//! What the scripted model says, written in Rust: values become the script of `model_server`.

use serde_json::{Map, Value, json};

/// One conversation of a script.
#[derive(Clone, Debug)]
pub struct Conversation(Value);

/// One answer of the model.
#[derive(Clone, Debug)]
pub struct Turn(Value);

/// A conversation that requests belong to whose goal contains `goal`.
pub fn conversation(goal: &str, turns: impl IntoIterator<Item = Turn>) -> Conversation {
    let turns: Vec<Value> = turns.into_iter().map(|turn| turn.0).collect();
    Conversation(json!({"name": goal, "match": {"goal": goal}, "turns": turns}))
}

/// The model asks for one tool.
pub fn call(tool: &str, arguments: Value) -> Turn {
    Turn(json!({"calls": [{"name": tool, "arguments": arguments}]}))
}

/// The model asks for one tool with arguments that are this text, JSON or not.
pub fn raw_call(tool: &str, arguments: &str) -> Turn {
    Turn(json!({"calls": [{"name": tool, "rawArguments": arguments}]}))
}

/// The model says something.
pub fn say(text: &str) -> Turn {
    Turn(json!({"say": text}))
}

/// A refund as a good agent does it: verify, check, refund, answer as the contract wants it.
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

/// What an order costs, as the shop's server has it.
pub fn price(order: &str) -> f64 {
    f64::from(1_590 + 200 * number(order)) / 100.0
}

fn number(order: &str) -> u32 {
    order.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

impl Conversation {
    /// Puts a hold before the given turn: the model thinks until the story releases it.
    #[must_use]
    pub fn hold(self, turn: usize, name: &str) -> Self {
        self.fault(turn, json!({"hold": name}))
    }

    /// Puts a fault before the given turn, in the words of the script.
    #[must_use]
    pub fn fault(self, turn: usize, fault: Value) -> Self {
        self.changed(turn, |turn| turn.fault(fault))
    }

    /// Thinks before the first turn: Anthropic's protocol shows it, and wants it back.
    #[must_use]
    pub fn thinking(self, thought: &str) -> Self {
        self.changed(0, |turn| turn.thinking(thought))
    }

    fn changed(mut self, turn: usize, change: impl FnOnce(Turn) -> Turn) -> Self {
        let turn = self.0.get_mut("turns").and_then(|turns| turns.get_mut(turn)).expect("the turn exists");
        *turn = change(Turn(turn.take())).0;
        self
    }

    /// Writes each turn as its protocol permits and servers seldom do.
    #[must_use]
    pub fn unusual(mut self) -> Self {
        for turn in self.answers("turns") {
            turn.insert("unusual".to_owned(), json!(true));
        }
        self
    }

    /// Answers questions for JSON only where they come with a schema.
    #[must_use]
    pub fn structured(mut self) -> Self {
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

    /// Has only the requests of this model.
    #[must_use]
    pub fn of_model(mut self, name: &str) -> Self {
        let matches = self.0.get_mut("match").and_then(Value::as_object_mut).expect("a conversation matches requests");
        matches.insert("model".to_owned(), json!(name));
        self
    }

    /// Knows nothing of these fields of a request, named by their paths with dots, and refuses them.
    #[must_use]
    pub fn not_knowing(mut self, fields: &[&str]) -> Self {
        let conversation = self.0.as_object_mut().expect("a conversation is an object");
        conversation.insert("unknownFields".to_owned(), json!(fields));
        self
    }

    /// Detects this intent, with these entities.
    #[must_use]
    pub fn intent(self, id: &str, entities: Value) -> Self {
        self.stage("intent", json!({"json": {"intent": id, "entities": entities}}))
    }

    /// Finds that the goal is none of the Skill's intents.
    #[must_use]
    pub fn out_of_domain(self) -> Self {
        self.stage("intent", json!({"json": {"intent": null}}))
    }

    /// Rules so on the next draft that the finalization gate is asked about.
    #[must_use]
    pub fn ruling(self, ruling: Value) -> Self {
        self.stage("finalization", json!({ "json": ruling }))
    }

    /// Says the answer so when it is to be polished.
    #[must_use]
    pub fn polished(self, text: &str) -> Self {
        self.stage("polish", json!({ "say": text }))
    }

    /// Adds an answer of a stage, in the words of the script.
    #[must_use]
    pub fn stage(mut self, stage: &str, answer: Value) -> Self {
        let conversation = self.0.as_object_mut().expect("a conversation is an object");
        let answers = conversation.entry(stage).or_insert(json!([]));
        answers.as_array_mut().expect("answers are a list").push(answer);
        self
    }

    /// Expects a text in the system prompt of the first turn.
    #[must_use]
    pub fn told(self, part: &str) -> Self {
        self.expect_first("systemContains", json!(part))
    }

    /// Expects that no message of the first turn holds any of these texts.
    #[must_use]
    pub fn not_told(self, parts: &[&str]) -> Self {
        self.expect_first("noMessageContains", json!(parts))
    }

    fn expect_first(self, what: &str, value: Value) -> Self {
        self.changed(0, |turn| turn.expect(what, value))
    }
}

/// A ruling of the finalization gate that fails a draft.
pub fn fails(code: &str, detail: &str, action: &str) -> Value {
    json!({"passed": false, "score": 0.3, "reasons": [{"code": code, "detail": detail}], "suggested_action": action})
}

impl Turn {
    /// The answer that ends a refund, with the fields of the contract.
    pub fn answer(order: &str) -> Self {
        say(&format!(
            "Order {order} is refunded.\n```json\n{}\n```",
            json!({"order_id": order, "status": "refunded", "next_steps": ["The money arrives within 5 days."]})
        ))
    }

    /// The model asks for one more tool in the same answer.
    #[must_use]
    pub fn and_call(mut self, tool: &str, arguments: Value) -> Self {
        let calls = self.0.get_mut("calls").and_then(Value::as_array_mut).expect("the turn has calls");
        calls.push(json!({"name": tool, "arguments": arguments}));
        self
    }

    /// Puts a fault before it, in the words of the script.
    #[must_use]
    pub fn fault(mut self, fault: Value) -> Self {
        let turn = self.0.as_object_mut().expect("a turn is an object");
        let faults = turn.entry("faults").or_insert(json!([]));
        faults.as_array_mut().expect("faults are a list").push(fault);
        self
    }

    /// Was thought about before: Anthropic's protocol shows it, and wants it back.
    #[must_use]
    pub fn thinking(mut self, thought: &str) -> Self {
        self.0.as_object_mut().expect("a turn is an object").insert("thinking".to_owned(), json!(thought));
        self
    }

    /// Was thought about before in a way that nobody may see; the text stands for it. Only Anthropic's protocol has it.
    #[must_use]
    pub fn redacted_thinking(mut self, text: &str) -> Self {
        self.0.as_object_mut().expect("a turn is an object").insert("redactedThinking".to_owned(), json!(text));
        self
    }

    /// Ends before it is done, for this reason.
    #[must_use]
    pub fn stopped_by(mut self, reason: &str) -> Self {
        self.0.as_object_mut().expect("a turn is an object").insert("stop".to_owned(), json!(reason));
        self
    }

    /// Claims to have cost so many tokens.
    #[must_use]
    pub fn costing(mut self, prompt_tokens: u64, completion_tokens: u64) -> Self {
        let usage = json!({"promptTokens": prompt_tokens, "completionTokens": completion_tokens});
        self.0.as_object_mut().expect("a turn is an object").insert("usage".to_owned(), usage);
        self
    }

    /// Is given only if the last tool result contains `part`.
    #[must_use]
    pub fn after_result(self, part: &str) -> Self {
        self.expect("lastToolResultContains", json!(part))
    }

    /// Is given only if the last message of the user contains `part`.
    #[must_use]
    pub fn after_feedback(self, part: &str) -> Self {
        self.expect("lastUserMessageContains", json!(part))
    }

    /// Is given only if these tools are offered.
    #[must_use]
    pub fn offered(self, tools: &[&str]) -> Self {
        self.expect("toolsOffered", json!(tools))
    }

    /// Is given only if these tools are not offered.
    #[must_use]
    pub fn not_offered(self, tools: &[&str]) -> Self {
        self.expect("toolsNotOffered", json!(tools))
    }

    /// Is given only if it is asked for as JSON of a schema.
    #[must_use]
    pub fn structured(self) -> Self {
        self.expect("structured", json!(true))
    }

    /// Is given only if no message holds this text.
    #[must_use]
    pub fn never_told(self, part: &str) -> Self {
        self.expect("noMessageContains", json!([part]))
    }

    fn expect(mut self, what: &str, value: Value) -> Self {
        let turn = self.0.as_object_mut().expect("a turn is an object");
        let expect = turn.entry("expect").or_insert(json!({}));
        expect.as_object_mut().expect("`expect` is an object").insert(what.to_owned(), value);
        self
    }
}

/// The script of these conversations, read once as the model server will.
pub fn script_text(conversations: &[Conversation]) -> String {
    let conversations: Vec<&Value> = conversations.iter().map(|conversation| &conversation.0).collect();
    let text = json!({ "conversations": conversations }).to_string();
    if let Err(why) = crate::model_server::script::Script::from_yaml(&text) {
        panic!("the model server would not take this script: {why}\n{text}");
    }
    text
}
