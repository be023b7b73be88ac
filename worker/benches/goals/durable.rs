//! What a durable step costs: the worker's journal, and bare segments of the same lines.

use crate::figures::{Figures, us};
use crate::player::Player;
use crate::rows::{Row, rows};
use crate::times::{ratio, typical};
use crate::{floor, skill};
use bloomery_engine::Conversation;
use bloomery_engine::line::Chain;
use bloomery_journal::files::Disk;
use bloomery_journal::{Store, claim};
use bloomery_redact::Redactor;
use bloomery_worker::driver::Recorder;
use bloomery_worker::printer::{Format, Printer};
use std::path::Path;
use std::time::{Duration, Instant};

/// How many answers the log has.
const ANSWERS: usize = 50;

/// How often it is written.
const ROUNDS: usize = 7;

/// Writes the rows of a log with both, row by row and by turns.
pub(crate) async fn measure(figures: &mut Figures, root: &Path) {
    let mut player = Player::new(skill::run(skill::skill()), 400);
    player.play_answers(ANSWERS);
    let rows = rows(&player.lines);
    let (mut journals, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (journal, floor) = round(root, &rows).await;
        journals.push(journal);
        floors.push(floor);
    }
    let step = |runs: &[Vec<Duration>]| typical(runs).iter().sum::<Duration>() / u32::try_from(ANSWERS).unwrap();
    let (journal, floor) = (step(&journals), step(&floors));
    figures.report("durable", "a step's segments, worker", us(journal), "us");
    figures.report("durable", "a step's segments, floor", us(floor), "us");
    figures.decide("durable", "a step's segments, worker to floor", (ratio(journal, floor), "x"), 1.3);
}

async fn round(root: &Path, rows: &[Row]) -> (Vec<Duration>, Vec<Duration>) {
    let (memory, bare) = (crate::fresh(root), crate::fresh(root));
    let store = Store::open(Disk, &memory, crate::RUN_KEY, "uid-1").unwrap();
    let mut conversation = Conversation::new(skill::run(skill::skill()));
    let claimed = claim(store, Chain::new(crate::SOURCE), &mut conversation, 1, Duration::ZERO).await.unwrap();
    let journal =
        Recorder::new(claimed, Printer::new(Format::Text, Box::new(std::io::sink())), &[], Redactor::default());
    let (mut journals, mut floors) = (Vec::new(), Vec::new());
    // The first row is the claim.
    for (at, row) in rows.iter().enumerate().skip(1) {
        let events = row.events.clone();
        let write_journal = || {
            let began = Instant::now();
            journal.append_all(events).unwrap();
            journal.sync().unwrap();
            began.elapsed()
        };
        let write_floor = || {
            let began = Instant::now();
            floor::write(&bare, row.first, row.text.as_bytes()).unwrap();
            began.elapsed()
        };
        // Neither is always the one that finds the disk busy.
        let (of_journal, of_floor) = if at % 2 == 0 {
            let first = write_journal();
            (first, write_floor())
        } else {
            let first = write_floor();
            (write_journal(), first)
        };
        journals.push(of_journal);
        floors.push(of_floor);
    }
    (journals, floors)
}
