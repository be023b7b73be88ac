//! What a program has started and let go of: whoever leaves its process group ends with the run all the same.

use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

/// How often, and after which pause, it is looked for what is left: whoever is killed leaves its own children to us.
const ROUNDS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// Whoever loses its parent below this process becomes its child. They are killed when this is dropped, and with them all that they
/// have started; so this outlives whatever is to end by itself.
#[derive(Debug)]
pub struct Orphans {
    are_ours: bool,
}

impl Orphans {
    /// Takes them from now on. Not where this process has children already, as one has that a shell became: nobody could
    /// say whose children are whose.
    pub fn adopt() -> Self {
        let are_ours = children().is_some_and(|children| children.is_empty());
        Self { are_ours: are_ours && set_child_subreaper(Some(getpid())).is_ok() }
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        if !self.are_ours {
            return;
        }
        for _ in 0..ROUNDS {
            // Nobody else gets the number of a child before it is waited for, and nobody waits for these. Those of another
            // user cannot be killed.
            let killed = children().into_iter().flatten().filter(|child| kill_process(*child, Signal::KILL).is_ok());
            if killed.count() == 0 {
                return;
            }
            sleep(PAUSE);
        }
    }
}

/// The children of this process that live; none where nobody can say.
fn children() -> Option<Vec<Pid>> {
    let own = getpid().as_raw_nonzero().get();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    let is_own = |number: &i32| fs::read_to_string(format!("/proc/{number}/stat")).is_ok_and(|stat| lives(&stat, own));
    Some(numbers.filter(is_own).filter_map(Pid::from_raw).collect())
}

/// Whether a line of `/proc/<number>/stat` is that of a child that lives.
fn lives(stat: &str, parent: i32) -> bool {
    // A name may hold anything.
    let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let state = fields.next();
    !matches!(state, None | Some("Z" | "X")) && fields.next().and_then(|field| field.parse().ok()) == Some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("7 (sleep) S 5 7 7 0 -1", true)]
    #[case("7 (a) Z 5 b) R 5 7", true)]
    #[case("7 (sleep) Z 5 7 7", false)]
    #[case("7 (sleep) S 6 7 7", false)]
    #[case("7 (sleep", false)]
    #[case("", false)]
    fn a_child_lives_where_its_line_says_so(#[case] stat: &str, #[case] is_so: bool) {
        assert_eq!(lives(stat, 5), is_so);
    }
}
