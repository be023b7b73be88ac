//! `bloomery reply`: appends a reply to the replies of a Job.
//!
//! Steps: read the Job, find the question, get the text, append the reply. Other users may append replies at the same time.

use super::client;
use super::cluster_command::ClusterCommand;
use super::compose_reply::{self, ReplyTarget};
use super::show;
use crate::args::ReplyArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::page::{Page, coloured};
use crate::{output, terminal, text};
use bloomery_crds::v1alpha1::{AskedQuestion, Job, Reply};
use bloomery_embed::cluster::reply::append;
use std::io::{self, Read};

/// The maximum length of the text on stdin, in bytes. It is higher than that of a reply, because spaces around the text are removed.
const MAX_STDIN_BYTES: u64 = 64 * 1024;

/// Sends a reply.
pub(super) async fn run(args: &ReplyArgs, command: &ClusterCommand<'_>) -> Result<Exit, Error> {
    if args.text.is_none() && !terminal::is_interactive() {
        return Err(Error::usage("there is no terminal to ask for the text: give it as an argument, or - for stdin"));
    }
    let client = client::open(command).await?;
    let job = client.job(&args.job).await?;
    let question =
        match compose_reply::target(&job, args.question.as_deref(), args.message).map_err(Error::on_cluster)? {
            ReplyTarget::Message => None,
            ReplyTarget::Question(question) => Some(question),
            ReplyTarget::Ambiguous(open) => Some(choose_question(&args.job, open).await?),
        };
    let typed = match args.text.as_deref() {
        Some("-") => read_stdin()?,
        Some(text) => text.to_owned(),
        None => ask_text(question.clone()).await?,
    };
    let (text, note) = compose_reply::reply_text(question.as_ref(), &typed)?;
    for note in note.into_iter().chain(question.as_ref().and_then(|question| second_answer_warning(&job, question))) {
        text::inform(&note);
    }
    let reply = Reply { question: question.as_ref().map(|question| question.id.clone()), text };
    let changed = append(&client, job, &reply).await.map_err(Error::on_cluster)?;
    match args.output {
        Some(format) => output::print(&show::format_job(&changed, format)?)?,
        None => output::print(&confirmation(&args.job, question.as_ref(), &reply))?,
    }
    Ok(Exit::Success)
}

/// Asks the user which of several questions the reply answers.
async fn choose_question(job: &str, open: Vec<AskedQuestion>) -> Result<AskedQuestion, Error> {
    if !terminal::is_interactive() {
        return Err(Error::usage(format!(
            "the Job {job} has several open questions. Select one with --question:{}",
            compose_reply::list_questions(&open)
        )));
    }
    anstream::eprint!("{}", coloured(&page(&open)));
    let read = move |line: &str| {
        let found = open.iter().find(|question| question.id == line.trim()).cloned();
        found.ok_or_else(|| {
            let ids: Vec<&str> = open.iter().map(|question| question.id.as_str()).collect();
            terminal::Retry(format!("Type one of: {}", ids.join(", ")))
        })
    };
    let chosen = terminal::ask(read, "Which question do you answer? ".to_owned()).await?;
    chosen.ok_or_else(|| Error::failed("nothing was sent"))
}

/// Asks the user for the text.
async fn ask_text(question: Option<AskedQuestion>) -> Result<String, Error> {
    let prompt = match &question {
        Some(question) => {
            anstream::eprint!("{}", coloured(&page(std::slice::from_ref(question))));
            if question.choices.is_empty() { "Your answer: " } else { "Your answer (number or text): " }
        }
        None => "Your message: ",
    };
    let read = move |line: &str| match compose_reply::reply_text(question.as_ref(), line) {
        Ok(_) => Ok(line.to_owned()),
        Err(error) => Err(terminal::Retry(error.message)),
    };
    let typed = terminal::ask(read, prompt.to_owned()).await?;
    typed.ok_or_else(|| Error::failed("nothing was sent"))
}

/// Formats questions with their ids.
fn page(questions: &[AskedQuestion]) -> String {
    let mut page = Page::default();
    for question in questions {
        page.question(&question.id, &question.text, &question.choices);
    }
    page.text()
}

/// Reads the text from stdin.
fn read_stdin() -> Result<String, Error> {
    let mut bytes = Vec::new();
    let length = io::stdin().lock().take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes);
    let length = length.map_err(|error| Error::usage(format!("stdin cannot be read: {error}")))?;
    if u64::try_from(length).is_ok_and(|length| length > MAX_STDIN_BYTES) {
        let limit = Reply::MAX_TEXT_BYTES;
        return Err(Error::usage(format!(
            "the text has more than {MAX_STDIN_BYTES} bytes; the limit is {limit}. Shorten it"
        )));
    }
    String::from_utf8(bytes).map_err(|error| Error::usage(format!("stdin is not valid UTF-8: {error}")))
}

/// Returns a warning if the question already has an answer, which the Job has not received yet.
fn second_answer_warning(job: &Job, question: &AskedQuestion) -> Option<String> {
    let other = compose_reply::pending_answer(job, &question.id)?;
    let text = text::escaped(&other.text);
    Some(format!(
        "{} already has an answer that the Job has not received yet: \"{text}\". The first answer counts.",
        question.id
    ))
}

/// Formats the confirmation for stdout.
fn confirmation(job: &str, question: Option<&AskedQuestion>, reply: &Reply) -> String {
    let text = text::escaped(&reply.text);
    match question {
        Some(question) => format!("job.bloomery.dev/{job} answered {}: {text}\n", question.id),
        None => format!("job.bloomery.dev/{job} was sent: {text}\n"),
    }
}
