//! The limits of a run, from `--limit`.

use crate::error::{Error, Errors};
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::v1alpha1::{Limits, seconds};
use serde_json::{Map, Value};

/// Parses limits by the rules of a Job's manifest.
///
/// # Errors
/// All invalid limits, at once.
pub fn read(given: &[(String, String)]) -> Result<Option<Limits>, Error> {
    let mut errors = Errors::default();
    let read: Vec<_> = given.iter().map(|(name, value)| errors.keep(limit(name, value))).collect();
    let Some(limits) = read.into_iter().collect::<Option<Map<String, Value>>>() else {
        return Err(errors.into_error());
    };
    if limits.is_empty() {
        return Ok(None);
    }
    typed(limits, "--limit").map(Some)
}

/// Returns warnings about limits above the Skill's, which have no effect.
pub fn ineffective_warnings(asked: Option<&Limits>, hold: &EffectiveLimits) -> Vec<String> {
    let Some(Limits { steps, tool_calls, tokens, duration }) = asked else { return Vec::new() };
    let each = [
        ("steps", steps.map(u64::from), hold.steps.into(), ""),
        ("toolCalls", tool_calls.map(u64::from), hold.tool_calls.into(), ""),
        ("tokens", *tokens, hold.tokens, ""),
        ("duration", duration.as_ref().map(seconds), hold.duration_seconds, "s"),
    ];
    let above = each.into_iter().filter_map(|(name, asked, holds, unit)| Some((name, asked?, holds, unit)));
    above
        .filter(|(_, asked, holds, _)| asked > holds)
        .map(|(name, asked, holds, unit)| {
            format!(
                "--limit {name}={asked}{unit}: the Skill's limit of {holds}{unit} applies, because a run can only lower it. Raise it \
                 in the Skill's `engine.limits`"
            )
        })
        .collect()
}

fn typed(limits: Map<String, Value>, of: &str) -> Result<Limits, Error> {
    serde_json::from_value(Value::Object(limits)).map_err(|error| Error::usage(format!("{of}: {error}")))
}

fn limit(name: &str, value: &str) -> Result<(String, Value), Error> {
    const KNOWN: [&str; 4] = ["steps", "toolCalls", "tokens", "duration"];
    if !KNOWN.contains(&name) {
        let near = bloomery_crds::nearest::did_you_mean(name, KNOWN);
        return Err(Error::usage(format!("--limit {name}: there is no such limit, but {}.{near}", KNOWN.join(", "))));
    }
    if name == "duration" && value != "0" && !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::usage(format!("--limit duration={value}: the unit is missing: write {value}s for seconds")));
    }
    let nothing = || Error::usage(format!("--limit {name}: must be more than 0"));
    if value.starts_with('-') {
        return Err(nothing());
    }
    let value = value.parse::<u64>().map_or_else(|_| Value::from(value), Value::from);
    if value == 0 {
        return Err(nothing());
    }
    let limit = (name.to_owned(), value);
    let read = typed(Map::from_iter([limit.clone()]), &format!("--limit {name}"))?;
    if read.duration.is_some_and(|duration| seconds(&duration) == 0) { Err(nothing()) } else { Ok(limit) }
}
