//! The view of a running Job, which a host provides.

use bloomery_http::progress::ProgressObserver;
use bloomery_mcp::StderrListener;
use bloomery_worker::driver::Observer;
use std::io::Write;

/// Shows a Job while it runs. The methods must not block.
pub trait RunView: Observer {
    /// Shows a message.
    fn print(&self, lines: &str);

    /// Shows a message about progress.
    fn print_progress(&self, lines: &str);

    /// Returns an observer of the progress between events.
    fn progress(&self) -> ProgressObserver;

    /// Returns the receiver of the lines that a program writes to its standard error. The text is untrusted.
    fn program_output(&self) -> StderrListener;

    /// Returns a writer for the events of the Job, or of a child of it, as lines for people.
    fn events(&self) -> Box<dyn Write + Send>;
}
