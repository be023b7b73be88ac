//! Third-party MCP servers, as processes that end with the test.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time limit for the start of a server, on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(2);

/// A running server.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts the reference server, which has all kinds of tools and results.
    pub(crate) fn everything() -> Self {
        Self::start(|port| {
            let mut command = Command::new("node");
            command.arg(install().join("node_modules/@modelcontextprotocol/server-everything/dist/index.js"));
            command.arg("streamableHttp").env("PORT", port.to_string());
            command
        })
    }

    /// Starts the time server.
    pub(crate) fn time() -> Self {
        Self::start(|port| {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/third_party/servers/serve_time.py");
            let mut command = Command::new(install().join("venv/bin/python"));
            command.arg(script).arg(port.to_string());
            command
        })
    }

    /// Returns the URL of the MCP endpoint.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    fn start(command: impl FnOnce(u16) -> Command) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = command(port).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert_eq!(child.try_wait().unwrap(), None, "the server has ended");
            assert!(Instant::now() < until, "the server does not listen");
            sleep(Duration::from_millis(20));
        }
        Self { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the locked Node.js, which is newer than that of some distributions.
pub(crate) fn node() -> PathBuf {
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    install().join(format!("node_modules/node-linux-{machine}/bin/node"))
}

/// Installs the servers, unless they are installed already. Returns their directory.
pub(crate) fn install() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hack/third-party");
        let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "hack/third-party failed");
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
    })
}
