//! Deserializes optional details of an answer, such as token counts. A detail that cannot be read is ignored.

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;

/// Deserializes a field, or `None` if its value has another type.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// Deserializes a number of tokens, which some servers write as a float, or `None` if it is not a whole number.
pub(crate) fn token_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    // The number is converted through text, because no cast from a float is exact for all values.
    let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0).then(|| format!("{number:.0}").parse().ok());
    Ok(lenient::<D, serde_json::Number>(deserializer)?
        .and_then(|number| number.as_u64().or_else(|| number.as_f64().and_then(whole).flatten())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[derive(serde::Deserialize)]
    struct Usage {
        #[serde(default, deserialize_with = "token_count")]
        prompt: Option<u64>,
    }

    #[rstest]
    #[case("{}", None)]
    #[case(r#"{"prompt":null}"#, None)]
    #[case(r#"{"prompt":12}"#, Some(12))]
    #[case(r#"{"prompt":12.0}"#, Some(12))]
    #[case(r#"{"prompt":12.5}"#, None)]
    #[case(r#"{"prompt":-1}"#, None)]
    #[case(r#"{"prompt":-1.0}"#, None)]
    #[case(r#"{"prompt":1e300}"#, None)]
    #[case(r#"{"prompt":"12"}"#, None)]
    #[case(r#"{"prompt":{"a":[1]}}"#, None)]
    fn a_count_that_is_not_a_whole_number_is_ignored(#[case] json: &str, #[case] expected: Option<u64>) {
        assert_eq!(serde_json::from_str::<Usage>(json).unwrap().prompt, expected);
    }
}
