//! Reads the answers of a model and its server: the whole body, and the text in it, which each stage reads.
//!
//! The second part of the input is the text of the next answer in the conversation.
#![no_main]

use bloomery_crds::canonical::{MAX_DEPTH, depth};
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::content;
use bloomery_engine::event::Answer;
use bloomery_engine::json_block;
use bloomery_engine::stage_prompt;
use bloomery_engine::stages::finalization::judge;
use bloomery_engine::stages::intent::prompt as intent;
use bloomery_fuzz::{Driven, skill};
use bloomery_models::read_answer;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

/// The largest status that a conversation may have, in bytes. The API server accepts larger objects.
const MAX_STATUS_BYTES: usize = 256 * 1024;

fuzz_target!(|data: &[u8]| {
    let whole = read_answer(ModelProvider::Openai, data);
    if let Ok(answer) = read_answer(ModelProvider::Anthropic, data) {
        check_answer(&answer);
    }
    if let Err(sentence) = &whole {
        assert!(sentence.len() <= 1024, "{sentence}");
    }
    let text = String::from_utf8_lossy(data);
    let (first, second) = text.split_once("\n%%\n").unwrap_or((&text, ""));
    let first = read_answer(ModelProvider::Openai, first.as_bytes()).unwrap_or_else(|_| text_answer(first));
    for answer in whole.iter().chain([&first]) {
        check_answer(answer);
    }
    check_stages(&first.text, second);
    let mut driven = Driven::opened();
    // The first request detects the intent.
    driven.answer(text_answer(r#"{"intent": "intent_refund", "entities": {"order_id": "A-17"}}"#));
    driven.answer(first);
    driven.answer(text_answer(second));
    assert!(driven.status().len() <= MAX_STATUS_BYTES);
    let mut driven = Driven::opened();
    driven.answer(text_answer(second));
    driven.answer(text_answer(second));
});

fn text_answer(text: &str) -> Answer {
    Answer { message: json!({"role": "assistant", "content": text}), text: text.to_owned(), ..Answer::default() }
}

/// Checks that an answer can be logged unchanged, and is within the limits.
fn check_answer(answer: &Answer) {
    let line = serde_json::to_string(answer).expect("an answer can be written");
    let read: Answer = serde_json::from_str(&line).expect("a written answer can be read");
    assert_eq!(&read, answer);
    assert_eq!(
        read.message.to_string(),
        answer.message.to_string(),
        "the message is written with other bytes, which changes the prefix of the prompt"
    );
    assert!(depth(&answer.message) <= MAX_DEPTH && answer.calls.len() <= 128);
}

/// Checks that each stage reads a text or returns a short error, and that an unchanged answer keeps its content.
fn check_stages(text: &str, other: &str) {
    let intents = skill().intents.expect("the Skill has intents");
    let faults = [
        stage_prompt::read_object(text).err().map(|error| error.to_string()),
        intent::read(text, &intents).err().map(|error| error.to_string()),
        judge::read(text).err().map(|error| error.to_string()),
        json_block::split(text).err().map(|error| error.to_string()),
    ];
    assert!(faults.into_iter().flatten().all(|fault| fault.len() <= 4096));
    let fields = json_block::split(text).map_or_else(|_| Map::new(), |(_, fields)| fields);
    assert!(depth(&Value::Object(fields.clone())) <= MAX_DEPTH);
    if let Err(difference) = content::check_content(text, text, &fields) {
        assert!(!difference.to_string().contains(" occurs "), "{difference}");
    }
    let forth = content::check_content(text, other, &Map::new()).is_ok();
    let back = content::check_content(other, text, &Map::new()).is_ok();
    assert!(
        forth == back || text.trim().is_empty() || other.trim().is_empty(),
        "one text keeps the content of the other, but not the other way round"
    );
}
