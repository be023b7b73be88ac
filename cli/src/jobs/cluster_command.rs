//! Commands that a person can type next, for the same cluster and with the same program.

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
    /// Creates it from the command line.
    pub fn new(invocation: Invocation, cluster: &'a ClusterArgs) -> Self {
        Self { invocation, cluster }
    }

    /// Returns a command line for a shell.
    pub fn line(&self, words: &str) -> String {
        let ClusterArgs { namespace, context, kubeconfig, user, groups } = self.cluster;
        let kubeconfig = kubeconfig.as_ref().map(|file| file.display().to_string());
        let named = [
            ("-n", namespace.as_ref()),
            ("--context", context.as_ref()),
            ("--kubeconfig", kubeconfig.as_ref()),
            ("--as", user.as_ref()),
        ];
        let groups = groups.iter().map(|group| ("--as-group", Some(group)));
        let options = named.into_iter().chain(groups).filter_map(|(name, value)| Some((name, value?)));
        let options: String = options
            .flat_map(|(name, value)| [" ".to_owned(), name.to_owned(), " ".to_owned(), shell_quoted(value)])
            .collect();
        // Without options these two commands use the memory.
        let is_local =
            self.invocation == Invocation::Standalone && (words.starts_with("get ") || words.starts_with("events "));
        let which = if is_local && options.is_empty() { " --cluster" } else { "" };
        format!("{} {words}{options}{which}", self.invocation.command())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_goes_the_way_that_somebody_went() {
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
