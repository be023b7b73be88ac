//! The limits of a Job that `options.limits` sets.

use crate::error::{Error, Errors};
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::v1alpha1::{Limits, whole_seconds};
use serde_json::{Map, Value};

/// Parses limits by the rules of a Job's manifest. Returns `None` if none are given.
///
/// # Errors
/// All invalid limits, at once.
pub fn read(given: &[(String, String)]) -> Result<Option<Limits>, Error> {
    let mut errors = Errors::default();
    let parsed: Vec<_> = given.iter().map(|(name, value)| errors.collect(parse_limit(name, value))).collect();
    let Some(limits) = parsed.into_iter().collect::<Option<Map<String, Value>>>() else {
        return Err(errors.into_error());
    };
    if limits.is_empty() {
        return Ok(None);
    }
    from_json(limits, "`options.limits`").map(Some)
}

/// Returns limits in the form that [`read`] parses.
///
/// # Errors
/// If they cannot be written as JSON.
pub fn as_text(limits: &Limits) -> Result<Vec<(String, String)>, Error> {
    let written = serde_json::to_value(limits).map_err(|error| Error::invalid(format!("limits: {error}")))?;
    let Value::Object(written) = written else { return Ok(Vec::new()) };
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(written.into_iter().map(|(name, value)| (name, text(value))).collect())
}

/// Returns a warning for each requested limit above the limit of the Skill. Such a limit has no effect.
pub fn ineffective_warnings(requested: Option<&Limits>, effective: &EffectiveLimits) -> Vec<String> {
    let Some(Limits { steps, tool_calls, tokens, duration }) = requested else { return Vec::new() };
    let each = [
        ("steps", steps.map(u64::from), effective.steps.into(), ""),
        ("toolCalls", tool_calls.map(u64::from), effective.tool_calls.into(), ""),
        ("tokens", *tokens, effective.tokens, ""),
        ("duration", duration.as_ref().map(whole_seconds), effective.duration_seconds, "s"),
    ];
    each.into_iter()
        .filter_map(|(name, requested, effective, unit)| Some((name, requested?, effective, unit)))
        .filter(|(_, requested, effective, _)| requested > effective)
        .map(|(name, requested, effective, unit)| {
            format!(
                "`options.limits` {name}={requested}{unit}: the Skill's limit of {effective}{unit} applies, because a run can only lower it. Raise it \
                 in the Skill's `engine.limits`"
            )
        })
        .collect()
}

/// Converts JSON into limits. An error begins with `option`.
fn from_json(limits: Map<String, Value>, option: &str) -> Result<Limits, Error> {
    serde_json::from_value(Value::Object(limits)).map_err(|error| Error::invalid(format!("{option}: {error}")))
}

/// Parses one limit, and checks it. Returns its name and its value as JSON.
fn parse_limit(name: &str, value: &str) -> Result<(String, Value), Error> {
    const KNOWN: [&str; 4] = ["steps", "toolCalls", "tokens", "duration"];
    if !KNOWN.contains(&name) {
        let near = bloomery_crds::nearest::did_you_mean(name, KNOWN);
        return Err(Error::invalid(format!(
            "`options.limits` {name}: there is no such limit. The limits are {}.{near}",
            KNOWN.join(", ")
        )));
    }
    if name == "duration" && value != "0" && !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::invalid(format!(
            "`options.limits` duration={value}: it has no unit: write {value}s for seconds"
        )));
    }
    let not_positive = || Error::invalid(format!("`options.limits` {name}: must be more than 0"));
    if value.starts_with('-') {
        return Err(not_positive());
    }
    let value = value.parse::<u64>().map_or_else(|_| Value::from(value), Value::from);
    if value == 0 {
        return Err(not_positive());
    }
    let limit = (name.to_owned(), value);
    let parsed = from_json(Map::from_iter([limit.clone()]), &format!("`options.limits` {name}"))?;
    if parsed.duration.is_some_and(|duration| whole_seconds(&duration) == 0) { Err(not_positive()) } else { Ok(limit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_were_written() {
        let limits: Limits = serde_json::from_value(serde_json::json!({"steps": 5, "duration": "90s"})).unwrap();
        assert_eq!(read(&as_text(&limits).unwrap()), Ok(Some(limits)));
    }
}
