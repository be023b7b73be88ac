//! Where in a command line the cursor is, and what can stand there. Decided over words.

use crate::args::ClusterArgs;
use clap::{Arg, Command, ValueHint};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What can stand at the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Candidates {
    /// One of these words, each with what it is about.
    Words(Vec<(String, String)>),
    /// A file, or what nobody but the person knows.
    Files,
    /// A name that the cluster knows, or the memory.
    Names(Kind),
}

/// What a name is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The Jobs of the cluster.
    Jobs,
    /// Those that have not ended.
    LiveJobs,
    /// The Jobs of the cluster, or of the memory.
    JobsOfPlace {
        /// Whether a directory will do.
        or_directory: bool,
        /// Whether the cluster was named.
        on_cluster: bool,
    },
    /// Approvals that are open, and Jobs that have one.
    Approvals,
    /// Skills.
    Skills,
    /// Skills and Jobs.
    SkillsAndJobs,
    /// The questions of the Job that stands before.
    Questions,
    /// Namespaces.
    Namespaces,
    /// Contexts of the kubeconfig.
    Contexts,
}

impl Kind {
    pub(super) fn may_be_a_file(self) -> bool {
        match self {
            Self::JobsOfPlace { or_directory, .. } => or_directory,
            Self::Jobs
            | Self::LiveJobs
            | Self::Approvals
            | Self::Skills
            | Self::SkillsAndJobs
            | Self::Questions
            | Self::Namespaces
            | Self::Contexts => false,
        }
    }
}

/// The cursor.
#[derive(Debug)]
pub(super) struct Point {
    /// What can stand there.
    pub candidates: Candidates,
    /// What stands there already.
    pub prefix: String,
    /// The cluster that was named before.
    pub cluster: Named,
    /// The memory that was named before.
    pub memory: Option<PathBuf>,
}

/// What was named before the cursor.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// The cluster.
    pub args: ClusterArgs,
    /// The first name after the command.
    pub first: Option<String>,
}

/// What was read of the words before the cursor.
#[derive(Default)]
struct Before {
    options: BTreeMap<String, String>,
    names: Vec<String>,
}

/// Finds out what can stand at the last of the words.
pub(super) fn at(root: &Command, words: &[String]) -> Point {
    let (prefix, before) = words.split_last().map_or((String::new(), words), |(last, before)| (last.clone(), before));
    let mut before = before.iter();
    let command =
        before.as_slice().first().and_then(|word| root.get_subcommands().find(|command| command.get_name() == word));
    let Some(command) = command else {
        let is_first = before.as_slice().is_empty();
        let words = if is_first { commands(root) } else { Vec::new() };
        return Point { candidates: Candidates::Words(words), prefix, cluster: Named::default(), memory: None };
    };
    before.next();
    let (read, open) = read(command, before);
    let of_option = |arg: &Arg| values(command.get_name(), arg);
    let (candidates, prefix) = match (open, prefix.split_once('=')) {
        (Some(arg), _) => (of_option(arg), prefix),
        (None, Some((name, value))) if name.starts_with("--") => match option(command, name) {
            // What completes it stands for all of the word.
            Some(arg) => (with_name(of_option(arg), name), format!("{name}={value}")),
            None => (Candidates::Words(Vec::new()), prefix),
        },
        (None, _) if prefix.starts_with('-') => (Candidates::Words(options(command)), prefix),
        (None, _) => (names(command, &read), prefix),
    };
    let Before { mut options, names } = read;
    let mut take = |id: &str| options.remove(id);
    let args = ClusterArgs {
        namespace: take("namespace"),
        context: take("context"),
        kubeconfig: take("kubeconfig").map(PathBuf::from),
        user: take("user"),
        groups: Vec::new(),
    };
    let memory = take("memory").map(PathBuf::from);
    Point { candidates, prefix, cluster: Named { args, first: names.into_iter().next() }, memory }
}

/// Reads the words before the cursor: options with their values, and names. Gives the option whose value comes next.
fn read<'c>(command: &'c Command, words: std::slice::Iter<'_, String>) -> (Before, Option<&'c Arg>) {
    let mut before = Before::default();
    let mut open: Option<&Arg> = None;
    for word in words {
        if let Some(arg) = open.take() {
            before.options.insert(arg.get_id().to_string(), word.clone());
            continue;
        }
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        match option(command, name) {
            Some(arg) if !arg.get_action().takes_values() => {
                before.options.insert(arg.get_id().to_string(), String::new());
            }
            Some(arg) => match value {
                Some(value) => drop(before.options.insert(arg.get_id().to_string(), value.to_owned())),
                None => open = Some(arg),
            },
            None if word.starts_with('-') && word.len() > 1 => {}
            None => before.names.push(word.clone()),
        }
    }
    (before, open)
}

fn option<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|arg| match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(long), _) => arg.get_long() == Some(long),
        (None, Some(short)) => arg.get_short().is_some_and(|of| short.chars().eq([of])),
        (None, None) => false,
    })
}

fn commands(root: &Command) -> Vec<(String, String)> {
    let seen = root.get_subcommands().filter(|command| !command.is_hide_set());
    seen.map(|command| (command.get_name().to_owned(), about(command.get_about()))).collect()
}

fn options(command: &Command) -> Vec<(String, String)> {
    let long = |arg: &Arg| Some((format!("--{}", arg.get_long()?), about(arg.get_help())));
    let known = command.get_arguments().filter_map(long);
    known.chain([("--help".to_owned(), "Print help".to_owned())]).collect()
}

/// The first line of a help text, cut where a shell would break it.
fn about(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().chars().take(80).collect()
}

/// The values of an option.
fn values(command: &str, arg: &Arg) -> Candidates {
    match (arg.get_id().as_str(), command) {
        ("namespace", "import") => Candidates::Files,
        ("namespace", _) => Candidates::Names(Kind::Namespaces),
        ("context", _) => Candidates::Names(Kind::Contexts),
        ("question", _) => Candidates::Names(Kind::Questions),
        ("skill", "get") => Candidates::Names(Kind::Skills),
        ("goal", "wait") => {
            Candidates::Words(plain(["ended", "waiting", "Succeeded", "Failed", "Refused", "Escalated", "Cancelled"]))
        }
        _ => fixed(arg),
    }
}

/// The values that an argument has by its type.
fn fixed(arg: &Arg) -> Candidates {
    let possible = arg.get_possible_values();
    if possible.is_empty() {
        // clap knows files by their type; of all else nobody knows, and a file may be it.
        debug_assert!(matches!(arg.get_value_hint(), ValueHint::Unknown | ValueHint::AnyPath));
        return Candidates::Files;
    }
    let word = |value: &clap::builder::PossibleValue| (value.get_name().to_owned(), about(value.get_help()));
    Candidates::Words(possible.iter().map(word).collect())
}

fn plain<const N: usize>(words: [&str; N]) -> Vec<(String, String)> {
    words.map(|word| (word.to_owned(), String::new())).into()
}

fn with_name(candidates: Candidates, name: &str) -> Candidates {
    match candidates {
        Candidates::Words(words) => {
            Candidates::Words(words.into_iter().map(|(word, about)| (format!("{name}={word}"), about)).collect())
        }
        // These are asked for once they are a word of their own.
        Candidates::Files | Candidates::Names(_) => Candidates::Files,
    }
}

/// What can stand where no option does.
fn names(command: &Command, before: &Before) -> Candidates {
    let nothing = || Candidates::Words(Vec::new());
    let given = before.names.len();
    let on_cluster = ["on_cluster", "all_namespaces", "namespace", "context", "kubeconfig", "user"]
        .iter()
        .any(|id| before.options.contains_key(*id));
    match (command.get_name(), given) {
        ("approve" | "deny" | "can-approve", 0) => Candidates::Names(Kind::Approvals),
        ("reply", 0) | ("cancel", _) => Candidates::Names(Kind::LiveJobs),
        ("wait", 0) => Candidates::Names(Kind::Jobs),
        ("get", 0) => Candidates::Names(Kind::JobsOfPlace { or_directory: false, on_cluster }),
        ("events", 0) => Candidates::Names(Kind::JobsOfPlace { or_directory: true, on_cluster }),
        ("tree", 0) => Candidates::Names(Kind::SkillsAndJobs),
        _ => {
            let positional = command.get_positionals().nth(given).or_else(|| command.get_positionals().last());
            let takes_more = |arg: &&Arg| given == 0 || arg.get_num_args().is_some_and(|n| n.max_values() > 1);
            positional.filter(takes_more).map_or_else(nothing, fixed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::CommandFactory;
    use rstest::rstest;

    fn point(line: &str) -> Point {
        // As clap has it where it runs.
        let mut root = Args::command();
        root.build();
        at(&root, &line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn words(line: &str) -> Vec<String> {
        let point = point(line);
        let Candidates::Words(words) = point.candidates else { panic!("{line}: {:?}", point.candidates) };
        words.into_iter().map(|(word, _)| word).filter(|word| word.starts_with(&point.prefix)).collect()
    }

    #[rstest]
    #[case::commands("ca", &["can-approve", "cancel"])]
    #[case::the_hidden_one_is_hidden("__", &[])]
    #[case::options("reply refund --me", &["--message"])]
    #[case::values("get -o ", &["json", "yaml", "name"])]
    #[case::values_in_one_word("get --output=y", &["--output=yaml"])]
    #[case::what_is_waited_for("wait refund --for e", &["ended"])]
    #[case::shells("completion z", &["zsh"])]
    #[case::nothing_after_a_text("wait refund ", &[])]
    #[case::no_such_command("refund ", &[])]
    fn words_are_completed(#[case] line: &str, #[case] expected: &[&str]) {
        assert_eq!(words(line), expected);
    }

    #[rstest]
    #[case("approve ", Kind::Approvals)]
    #[case("approve --yes --reason no ", Kind::Approvals)]
    #[case("reply re", Kind::LiveJobs)]
    #[case("reply refund -q ", Kind::Questions)]
    #[case("cancel one two ", Kind::LiveJobs)]
    #[case("wait -n acme ", Kind::Jobs)]
    #[case("tree ", Kind::SkillsAndJobs)]
    #[case("get ", Kind::JobsOfPlace { or_directory: false, on_cluster: false })]
    #[case("events --context here ", Kind::JobsOfPlace { or_directory: true, on_cluster: true })]
    #[case("get --skill ", Kind::Skills)]
    #[case("get -n ", Kind::Namespaces)]
    #[case("get --context ", Kind::Contexts)]
    fn names_are_asked_for(#[case] line: &str, #[case] kind: Kind) {
        assert_eq!(point(line).candidates, Candidates::Names(kind));
    }

    #[rstest]
    #[case("lint ")]
    #[case("lint one.yaml ")]
    #[case("import ")]
    #[case("run --skill ")]
    #[case("get --kubeconfig ")]
    fn files_are_the_shells(#[case] line: &str) {
        assert_eq!(point(line).candidates, Candidates::Files);
    }

    #[test]
    fn what_stands_before_the_cursor_is_known() {
        let Point { cluster, memory, .. } = point("reply refund -n acme --context=here --as jane --question ");
        let Named { args, first } = cluster;
        assert_eq!((args.namespace.as_deref(), args.context.as_deref()), (Some("acme"), Some("here")));
        assert_eq!((args.user.as_deref(), first.as_deref(), memory), (Some("jane"), Some("refund"), None));
    }

    #[test]
    fn no_words_are_the_commands() {
        let mut root = Args::command();
        root.build();
        assert!(matches!(at(&root, &[]).candidates, Candidates::Words(words) if !words.is_empty()));
    }
}
