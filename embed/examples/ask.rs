//! Starts a Job of the Skill `sw-dev-agent` on a directory, and prints its events and its answer:
//! `cargo run --package bloomery-embed --example ask -- "What does this program do?" .`

use bloomery_embed::run::options::RunOptions;
use bloomery_embed::{Cursor, LocalRuntime, NewJob, Runtime, Tenant};
use futures::StreamExt;
use std::collections::BTreeMap;
use std::env;
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (goal, codebase) = env::args().nth(1).zip(env::args().nth(2)).ok_or("usage: ask GOAL DIR")?;
    let tenants = BTreeMap::from([("local".to_owned(), RunOptions::new("memory"))]);
    let runtime = LocalRuntime::new(tenants)?;
    let tenant = runtime.open("local", "example".to_owned()).await?;

    let resources = BTreeMap::from([("codebase".to_owned(), codebase)]);
    let job = tenant.start(NewJob { resources, ..NewJob::new(goal) }).await?;
    let mut events = tenant.events(&job, Cursor::START).await?;
    while let Some(event) = events.next().await {
        println!("{}", event?.kind);
    }
    let status = tenant.status(&job).await?.status;
    println!("{}", status.result.map(|result| result.text).unwrap_or_default());
    tenant.close().await;
    Ok(())
}
