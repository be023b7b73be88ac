//! What becomes of a call's answer: a large one is kept in the focus cache, and the model sees an excerpt.

use crate::focus::FocusCache;
use crate::log::{Error, files::Files};
use bloomery_crds::text::bounded;
use bloomery_engine::Event;
use bloomery_engine::gate::core_tools::FOCUS_READ;
use bloomery_engine::offload::{INLINE_BYTES, Offload, excerpt};
use bloomery_engine::step::ToolCall;

/// Answers a call that is the worker's own.
pub(super) fn core(call: &ToolCall<'_>, focus: &FocusCache, files: &impl Files) -> Event {
    let answer = match call.tool {
        FOCUS_READ => focus.read(files, call.arguments),
        other => Err(format!("This worker has no tool {other}; nothing was done.")),
    };
    let call = call.id.clone();
    match answer {
        Ok(text) => Event::ToolCompleted { call, text },
        Err(text) => Event::ToolFailed { call, text },
    }
}

/// The outcome as it is recorded. A large answer is durable in the focus cache before it is; one that cannot be
/// kept is cut, because the call has happened all the same.
pub(super) fn kept(outcome: Event, focus: &FocusCache, files: &impl Files) -> Event {
    match outcome {
        Event::ToolCompleted { call, text } if text.len() > INLINE_BYTES => match focus.keep(files, &text) {
            Ok(handle) => {
                let excerpt = excerpt(&text, &handle);
                Event::ResultOffloaded { call, handle, bytes: bytes(&text), excerpt }
            }
            Err(error) => {
                tracing::error!("a result of {} bytes cannot be kept in the focus cache: {error}", text.len());
                let note = format!("\n[cut: of {} bytes, the rest could not be kept]", text.len());
                Event::ToolCompleted { call, text: bounded(&text, INLINE_BYTES - note.len()) + &note }
            }
        },
        Event::ToolFailed { call, text } => Event::ToolFailed { call, text: bounded(&text, INLINE_BYTES) },
        Event::ToolIndeterminate { call, text } => {
            Event::ToolIndeterminate { call, text: bounded(&text, INLINE_BYTES) }
        }
        other => other,
    }
}

/// Keeps an earlier result, and says so.
///
/// # Errors
/// If it cannot be kept: the conversation has no room left for it, so it cannot go on here.
pub(super) fn offloaded(result: &Offload<'_>, focus: &FocusCache, files: &impl Files) -> Result<Event, Error> {
    let Offload { call, text } = result;
    let handle = focus.keep(files, text).map_err(|error| Error::of("keep a result in", focus.dir(), error))?;
    let excerpt = excerpt(text, &handle);
    Ok(Event::ResultOffloaded { call: (*call).clone(), handle, bytes: bytes(text), excerpt })
}

fn bytes(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}
