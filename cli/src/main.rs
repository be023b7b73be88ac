//! `bloomery`: the command line for authors of Skills, and for people who approve calls and answer questions of Jobs.

mod approvals;
mod args;
mod cluster;
mod complete;
mod error;
mod events;
mod exit;
mod findings;
mod get;
mod import;
mod jobs;
mod lint;
mod migrate;
mod option_names;
mod output;
mod page;
mod policy;
mod repository;
mod run;
mod summary;
mod table;
mod terminal;
mod text;

use args::{Args, Command, Invocation, Place};
use bloomery_crds::v1alpha1::ApprovalVerdict;
use bloomery_embed::{check, choice, local, source};
use clap::{CommandFactory, FromArgMatches};
use error::Error;
use jobs::ClusterCommand;
use std::process::ExitCode;

fn main() -> ExitCode {
    let invocation = Invocation::of_process();
    if complete::complete_for_shell(invocation) {
        return ExitCode::SUCCESS;
    }
    let Args { command } = parse_args(invocation);
    let result = match command {
        Command::Run(args) => run::run(&args),
        Command::Serve(args) => run::serve::run(&args),
        Command::Validate(args) => run::validate::run(&args),
        Command::Events(args) => {
            let needs_cluster = args.whole || args.image.is_some();
            match args.place.place(invocation, needs_cluster) {
                Place::Memory(memory) => events::run(&args, memory),
                Place::Cluster(cluster) => jobs::events(&args, &ClusterCommand::new(invocation, cluster)),
            }
        }
        Command::Get(args) => match args.place.place(invocation, args.all_namespaces) {
            Place::Memory(memory) => get::run(&args, memory),
            Place::Cluster(cluster) => jobs::get(&args, &ClusterCommand::new(invocation, cluster)),
        },
        Command::Migrate(args) => migrate::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => repository::export::run(&args),
        Command::New(args) => repository::create::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Policy(command) => policy::run(&command),
        Command::Approve(args) => approvals::decide(&args, ApprovalVerdict::Approve),
        Command::Deny(args) => approvals::decide(&args, ApprovalVerdict::Deny),
        Command::CanApprove(args) => approvals::can_approve(&args),
        Command::Reply(args) => jobs::reply(&args, &ClusterCommand::new(invocation, &args.cluster)),
        Command::Cancel(args) => jobs::cancel(&args, &ClusterCommand::new(invocation, &args.cluster)),
        Command::Wait(args) => jobs::wait(&args, &ClusterCommand::new(invocation, &args.cluster)),
        Command::Tree(args) => jobs::tree(&args, &ClusterCommand::new(invocation, &args.cluster)),
        Command::Completion { shell } => complete::print_script(shell, invocation),
    };
    let exit = result.unwrap_or_else(|Error { exit, message, findings }| {
        // If stderr cannot be written, there is no place for an error.
        let _ = findings::print_text(&mut anstream::stderr().lock(), &findings);
        text::report(&message);
        exit
    });
    exit.into()
}

/// Parses the command line.
fn parse_args(invocation: Invocation) -> Args {
    let matches = Args::command().bin_name(invocation.command()).get_matches();
    Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}
