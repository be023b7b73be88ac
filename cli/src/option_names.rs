//! The options of commands, in messages of the library.

use bloomery_embed::text::with_option_names;

/// The options, by the fields of the library's options and by the parameters of its functions for a cluster.
const OPTIONS: [(&str, &str); 22] = [
    ("allow_scripts", "--allow-scripts"),
    ("bootstrap", "--bootstrap"),
    ("continues", "--continues"),
    ("goal", "--goal"),
    ("image", "--image"),
    ("limits", "--limit"),
    ("mcp.command", "--mcp-command"),
    ("mcp.env", "--mcp-env"),
    ("mcp.url", "--mcp"),
    ("memory", "--memory"),
    ("memory_scope", "--memory-scope"),
    ("message", "--message"),
    ("model.api_key_file", "--api-key-file"),
    ("model.model", "--model"),
    ("model.model_url", "--model-url"),
    ("model.provider", "--provider"),
    ("namespace", "--namespace"),
    ("project_path", "--project-path"),
    ("question", "--question"),
    ("resources", "--resource"),
    ("run_key", "--run-key"),
    ("skill", "--skill"),
];

/// Returns a message of the library with the names of the commands' options.
pub fn with_options_of_commands(message: &str) -> String {
    with_option_names(message, |field| {
        if let Some(resource) = field.strip_prefix("resources.") {
            return Some(format!("--resource {resource}"));
        }
        OPTIONS.iter().find(|(known, _)| *known == field).map(|(_, option)| (*option).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_embed::cluster::compose_reply;
    use bloomery_embed::run::options::RunOptions;
    use bloomery_embed::run::{limits, prepare};
    use bloomery_redact::Redactor;
    use bloomery_testkit::objects::jobs::job;

    #[test]
    fn messages_name_the_options_of_commands() {
        let limits = limits::read(&[("size".to_owned(), "1".to_owned())]).unwrap_err();
        let missing = prepare::new_job(&RunOptions::new("/no/such/memory"), Redactor::default()).unwrap_err();
        let reply = compose_reply::target(&job("new"), Some("q-1"), false).unwrap_err();
        for (message, expected) in [
            (limits.message, "--limit size: there is no such limit"),
            (missing.message, "--goal is missing"),
            (reply.message, "Without --question q-1, the text is sent as a message"),
        ] {
            let shown = with_options_of_commands(&message);
            assert!(shown.contains(expected) && !shown.contains("`options."), "{shown}");
        }
    }
}
