//! Options after `--mcp-command`. They are arguments of its program, which may be a mistake.

use crate::args::{Args, McpArgs};
use crate::text;
use clap::CommandFactory;
use std::collections::BTreeSet;

/// Prints a note if the program of `--mcp-command` gets arguments with the names of options of `command`. A `;` ends the
/// arguments of the program, so there is no note if the command line has one.
pub fn report(command: &str, mcp: &McpArgs) {
    if mcp.command.is_empty() || std::env::args_os().any(|word| word == ";") {
        return;
    }
    if let Some(note) = note(command, &mcp.command) {
        text::report(&note);
    }
}

/// Returns the note about the words of a program that have the names of options of `command`.
fn note(command: &str, program: &[String]) -> Option<String> {
    let commands = Args::command();
    let options = commands.find_subcommand(command)?.get_arguments().filter_map(clap::Arg::get_long);
    let options: BTreeSet<String> = options.map(|name| format!("--{name}")).collect();
    let names = program.iter().map(|word| word.split_once('=').map_or(word.as_str(), |(name, _)| name));
    let swallowed: BTreeSet<&str> = names.filter(|name| options.contains(*name)).collect();
    let are = match swallowed.len() {
        0 => return None,
        1 => "is an argument",
        _ => "are arguments",
    };
    let swallowed = swallowed.into_iter().collect::<Vec<_>>().join(", ");
    Some(format!(
        "{swallowed} {are} of the program here, like all words after --mcp-command: write {swallowed} before --mcp-command, or write ';' \
         after the arguments of the program"
    ))
}

#[cfg(test)]
mod tests {
    use super::note;
    use rstest::rstest;

    #[rstest]
    #[case::none("run", &["server", "--port", "80", "goal", "--goals"], None)]
    #[case::one("run", &["server", "--limit=steps=1", "--limit=tokens=9"], Some("--limit is an argument of the program"))]
    #[case::several("run", &["server", "--skill", "x", "--goal", "y"], Some("write --goal, --skill before --mcp-command"))]
    #[case::of_a_part("run", &["server", "--mcp-env", "TOKEN", "--model-url", "x"], Some("--mcp-env, --model-url are arguments"))]
    #[case::of_another_command("serve", &["server", "--goal", "x"], None)]
    fn options_of_the_command_are_named(#[case] command: &str, #[case] program: &[&str], #[case] says: Option<&str>) {
        let program: Vec<String> = program.iter().map(|&word| word.to_owned()).collect();
        let note = note(command, &program);
        assert_eq!(note.is_some(), says.is_some(), "{note:?}");
        assert!(note.unwrap_or_default().contains(says.unwrap_or_default()));
    }
}
