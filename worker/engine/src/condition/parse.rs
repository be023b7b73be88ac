//! From text to what can be evaluated.

use super::fault::Fault;
use super::lower::{Node, lower};
use bloomery_crds::text::bounded;
use cel::{Env, ParseErrors};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The stack that parsing gets. The check of tokens keeps well below it; if the parser's lexer ever saw more
/// brackets than ours, the kibibyte of text would still fit.
const STACK: usize = 64 * 1024 * 1024;

/// The longest sentence of the parser that is passed on.
const MAX_SENTENCE: usize = 256;

/// Parses a condition that passed the check of its tokens, and lowers it.
///
/// All on a stack of its own, the dropping of the parser's tree included. A parser that panics is a fault.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let attempt = || {
        // No macros: `all` and its like stay calls, and are lowered as what they are.
        let env = Env::default().with_optional_support(false);
        let program = env.compile(text).map_err(|errors| syntax(&errors))?;
        lower(program.expression())
    };
    stacker::grow(STACK, || catch_unwind(AssertUnwindSafe(attempt)))
        .unwrap_or_else(|_| Err(Fault::Syntax("the parser gave up on it".into())))
}

fn syntax(errors: &ParseErrors) -> Fault {
    let sentence = errors.errors.first().map_or_else(String::new, |error| {
        let (line, column) = error.pos;
        format!("{} (line {line}, column {column})", error.msg)
    });
    Fault::Syntax(bounded(&sentence, MAX_SENTENCE))
}
