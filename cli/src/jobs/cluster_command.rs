//! Command lines that messages suggest to a person. They use the same program and the same cluster as the current command.

use crate::args::{ClusterArgs, Invocation};
use crate::text::shell_quoted;

/// The program and the cluster that a person uses.
#[derive(Debug, Clone, Copy)]
pub struct ClusterCommand<'a> {
    invocation: Invocation,
    /// The options that select the cluster.
    pub cluster: &'a ClusterArgs,
}

impl<'a> ClusterCommand<'a> {
    /// Creates a command from the program and the cluster of the current command line.
    pub fn new(invocation: Invocation, cluster: &'a ClusterArgs) -> Self {
        Self { invocation, cluster }
    }

    /// Returns the command line for a shell that runs the subcommand in `words`.
    pub fn line(&self, words: &str) -> String {
        let ClusterArgs { namespace, context, kubeconfig, user, groups } = self.cluster;
        let kubeconfig = kubeconfig.as_ref().map(|file| file.display().to_string());
        let single_options = [
            ("-n", namespace.as_ref()),
            ("--context", context.as_ref()),
            ("--kubeconfig", kubeconfig.as_ref()),
            ("--as", user.as_ref()),
        ];
        let group_options = groups.iter().map(|group| ("--as-group", Some(group)));
        let options = single_options.into_iter().chain(group_options).filter_map(|(name, value)| Some((name, value?)));
        let options: String = options
            .flat_map(|(name, value)| [" ".to_owned(), name.to_owned(), " ".to_owned(), shell_quoted(value)])
            .collect();
        // Without options, `bloomery get` and `bloomery events` use the memory of this machine.
        let needs_cluster_option =
            self.invocation == Invocation::Standalone && (words.starts_with("get ") || words.starts_with("events "));
        let cluster_option = if needs_cluster_option && options.is_empty() { " --cluster" } else { "" };
        format!("{} {words}{options}{cluster_option}", self.invocation.command())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggested_command_uses_the_same_program_and_cluster() {
        let nothing = ClusterArgs::default();
        assert_eq!(
            ClusterCommand::new(Invocation::KubectlPlugin, &nothing).line("get refund"),
            "kubectl bloomery get refund"
        );
        assert_eq!(
            ClusterCommand::new(Invocation::Standalone, &nothing).line("get refund"),
            "bloomery get refund --cluster"
        );
        assert_eq!(ClusterCommand::new(Invocation::Standalone, &nothing).line("reply refund"), "bloomery reply refund");
        let named = ClusterArgs {
            namespace: Some("acme".into()),
            context: Some("it's here".into()),
            user: Some("jane@acme.io".into()),
            groups: vec!["a".into(), "b".into()],
            ..ClusterArgs::default()
        };
        assert_eq!(
            ClusterCommand::new(Invocation::Standalone, &named).line("get refund"),
            "bloomery get refund -n acme --context 'it'\\''s here' --as jane@acme.io --as-group a --as-group b"
        );
    }
}
