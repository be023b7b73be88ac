//! The two spellings of field names.

/// The spelling of field names in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The spelling of the API: `outOfDomain`.
    Api,
    /// The spelling of the dialect: `out_of_domain`.
    Dialect,
}

impl Naming {
    /// Returns a field name of the API in this spelling.
    pub(crate) fn spell(self, field: &str) -> String {
        match self {
            Self::Api => field.to_owned(),
            Self::Dialect => to_snake_case(field),
        }
    }
}

/// Converts `outOfDomain` to `out_of_domain`.
pub(crate) fn to_snake_case(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for c in camel.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::to_snake_case;

    #[test]
    fn camel_case_becomes_snake_case() {
        for (camel, expected) in [("outOfDomain", "out_of_domain"), ("toolId", "tool_id"), ("name", "name")] {
            assert_eq!(to_snake_case(camel), expected);
        }
    }
}
