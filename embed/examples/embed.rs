//! Starts a Job of the Skill `sw-dev-agent` on a directory, shows its events, answers its questions from stdin, and prints its answer:
//! `cargo run --package bloomery-embed --example embed -- "What does this program do?" .`

use bloomery_embed::run::options::RunOptions;
use bloomery_embed::{Cursor, Input, LocalRuntime, NewJob, Runtime, Tenant};
use futures::StreamExt;
use std::collections::BTreeMap;
use std::error::Error;
use std::{env, io};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (goal, codebase) = env::args().nth(1).zip(env::args().nth(2)).ok_or("usage: embed GOAL DIR")?;
    let runtime = LocalRuntime::new(BTreeMap::from([("local".to_owned(), RunOptions::new("memory"))]))?;
    let tenant = runtime.open("local", "example".to_owned()).await?;

    let resources = BTreeMap::from([("codebase".to_owned(), codebase)]);
    let job = tenant.start(NewJob { resources, ..NewJob::new(goal) }).await?;
    let mut events = tenant.events(&job, Cursor::START).await?;
    while let Some(event) = events.next().await {
        let event = event?;
        println!("{} {}", event.seq, event.kind);
        if event.kind != "user.asked" {
            continue;
        }
        for asked in tenant.open_requests(&job).await?.questions {
            println!("{}", asked.question.text);
            let mut text = String::new();
            io::stdin().read_line(&mut text)?;
            tenant.send(&job, Input::Reply { question: asked.question.id, text }).await?;
        }
    }
    let status = tenant.status(&job).await?.status;
    println!("{}", status.result.map(|result| result.text).unwrap_or_default());
    tenant.close().await;
    Ok(())
}
