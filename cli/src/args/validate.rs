//! The arguments of `validate`.
#![expect(clippy::doc_markdown, reason = "help texts have no markup")]

use super::local::{McpArgs, ModelArgs};
use super::values::{Error, pair};
use bloomery_embed::run::options::RunOptions;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The arguments of `validate`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each feature is tested in a conversation of its own, with an empty memory: its testScenario is the goal, and the model of the\n\
                  finalization gate judges the answer by its expectedResult. Tools that are not readOnly are called only if `allow` of the\n\
                  feature names them. A feature with ext.subskill is not tested here: its Skill has the tests.\n\
                  The results are printed to stdout, the progress to stderr. Models in the files are skipped: name them with --model.\n\n\
                  Exit codes: 0 all features passed, 1 a feature failed, 2 invalid arguments or input, 130 interrupted.\n\n\
                  Example: bloomery validate skills --model models.yaml --junit target/skills.xml"
)]
pub struct ValidateArgs {
    /// The Skills: files, directories with files (*.yaml and *.yml), repositories of skills as bloomery import reads them, or - for stdin
    #[arg(value_name = "DIR|FILE", required = true, value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Validate only this Skill
    #[arg(long, value_name = "NAME")]
    pub skill: Option<String>,
    /// Validate only the feature of this name
    #[arg(long, value_name = "NAME")]
    pub feature: Option<String>,
    /// Test each feature this many times, at most 20. Default: engine.validation.runs of the Skill, or else 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub runs: Option<u32>,
    /// The share of its tests that a feature must pass, such as 0.8. Default: engine.validation.passRate of the Skill, or else 1
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub pass_rate: Option<f64>,
    /// Write the results to this file too, as JUnit XML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub junit: Option<PathBuf>,
    /// Keep the logs of the conversations in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,
    /// Bind a resource of the Skills that declare it to a path (PATH:ro is read-only), a URL, or a secret in a file (@FILE)
    #[arg(long = "resource", value_name = "NAME=VALUE", value_parser = pair)]
    pub resources: Vec<(String, String)>,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The MCP server, instead of that of each Skill
    #[command(flatten)]
    pub mcp: McpArgs,
    /// Run the scripts of the Skills on this machine, as your user. By default, they do not run, and a feature with ext.script fails
    #[arg(long)]
    pub allow_scripts: bool,
    /// Lower a limit of each conversation: steps, toolCalls, tokens or duration (such as 10m)
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = pair)]
    pub limits: Vec<(String, String)>,
    /// How long a failing model or MCP server is retried, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = RunOptions::DEFAULT_PATIENCE.as_secs())]
    pub patience: u64,
}

/// Parses a share of more than 0, and at most 1.
fn rate(text: &str) -> Result<f64, Error> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= 1.0);
    rate.ok_or_else(|| Error("must be a number of more than 0, and at most 1".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::rate;
    use rstest::rstest;

    #[rstest]
    #[case::all("1", true)]
    #[case::a_part("0.8", true)]
    #[case::nothing("0", false)]
    #[case::negative("-0.5", false)]
    #[case::percent("80", false)]
    #[case::no_number("NaN", false)]
    #[case::a_word("all", false)]
    fn a_pass_rate_is_a_share(#[case] text: &str, #[case] is_valid: bool) {
        assert_eq!(rate(text).is_ok(), is_valid);
    }
}
