//! The arguments of a call.

use serde_json::Value;

/// The most arguments of a script.
const MAX_ARGS: usize = 32;

/// The longest argument of a script, in bytes.
const MAX_ARG_BYTES: usize = 4096;

/// A call of a script.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Call {
    /// The arguments of the script.
    pub(super) args: Vec<String>,
    /// The standard input of the script, which is JSON.
    pub(super) stdin: Option<String>,
}

impl Call {
    /// Reads the arguments.
    ///
    /// # Errors
    /// A sentence about the first argument that is not valid.
    pub(super) fn read(arguments: Value) -> Result<Self, String> {
        let fields = match arguments {
            Value::Null => return Ok(Self::default()),
            Value::Object(fields) => fields,
            _ => return Err("the arguments are not a JSON object".to_owned()),
        };
        let mut call = Self::default();
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("args", Value::Array(args)) => call.args = args.into_iter().map(arg).collect::<Result<_, _>>()?,
                ("args", _) => return Err("args: is not a list of texts".to_owned()),
                ("stdin", value) => call.stdin = Some(value.to_string()),
                (other, _) => return Err(format!("{other:?}: is not an argument: use args and stdin")),
            }
        }
        if call.args.len() > MAX_ARGS {
            return Err(format!("args: has {} items, and the most is {MAX_ARGS}", call.args.len()));
        }
        Ok(call)
    }
}

fn arg(value: Value) -> Result<String, String> {
    match value {
        Value::String(arg) if arg.len() > MAX_ARG_BYTES => {
            Err(format!("args: an item has {} bytes, and the most is {MAX_ARG_BYTES}", arg.len()))
        }
        Value::String(arg) if arg.contains('\0') => Err("args: an item has a NUL character".to_owned()),
        Value::String(arg) => Ok(arg),
        other => {
            Err(format!("args: an item is not a text: {}", other.to_string().chars().take(32).collect::<String>()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::none(Value::Null, &[], None)]
    #[case::empty(json!({}), &[], None)]
    #[case::both(json!({"args": ["a b", ""], "stdin": {"n": [1]}}), &["a b", ""], Some("{\"n\":[1]}"))]
    #[case::a_text(json!({"stdin": "x"}), &[], Some("\"x\""))]
    #[case::null(json!({"stdin": null}), &[], Some("null"))]
    fn arguments_are_texts_and_the_input_is_json(
        #[case] arguments: Value,
        #[case] args: &[&str],
        #[case] stdin: Option<&str>,
    ) {
        let expected =
            Call { args: args.iter().map(|arg| (*arg).to_owned()).collect(), stdin: stdin.map(str::to_owned) };
        assert_eq!(Call::read(arguments), Ok(expected));
    }

    #[rstest]
    #[case::no_object(json!([1]), "the arguments are not a JSON object")]
    #[case::no_list(json!({"args": "a b"}), "args: is not a list of texts")]
    #[case::a_number(json!({"args": ["a", 1]}), "args: an item is not a text: 1")]
    #[case::another(json!({"argv": []}), "\"argv\": is not an argument: use args and stdin")]
    #[case::many(json!({"args": vec![""; 33]}), "args: has 33 items, and the most is 32")]
    #[case::long(json!({"args": ["x".repeat(4097)]}), "args: an item has 4097 bytes, and the most is 4096")]
    #[case::nul(json!({"args": ["a\0b"]}), "args: an item has a NUL character")]
    fn arguments_that_are_not_valid_are_refused(#[case] arguments: Value, #[case] expected: &str) {
        assert_eq!(Call::read(arguments), Err(expected.to_owned()));
    }

    #[test]
    fn arguments_at_their_limits_are_accepted() {
        let args = vec!["x".repeat(MAX_ARG_BYTES); MAX_ARGS];
        assert_eq!(Call::read(json!({"args": args})).map(|call| call.args), Ok(args));
    }
}
