//! Finds the MCP server of a Job, and checks it before the start.

use super::skill::LoadedSkill;
use super::{credential, mcp_environment};
use crate::error::{Error, Errors};
use crate::local::run_document::McpProgram;
use crate::run::options::McpOptions;
use bloomery_crds::core_tools;
use bloomery_crds::run::{McpEndpoint, Revision};
use bloomery_crds::v1alpha1::McpServer;
use bloomery_http::address::AddressPolicy;
use bloomery_http::{self as http, ClientOptions};
use bloomery_mcp::{self as mcp, StderrListener};
use bloomery_redact::Redactor;
use rustix::fs::{Access, access};
use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The origin of the address of an MCP server that no option names.
const OF_SKILL: &str = "the MCP server of the Skill";

/// The search path for programs if PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The maximum length of the first line of a script, in bytes.
const MAX_FIRST_LINE_BYTES: u64 = 256;

/// The MCP server of a Job. It is an address or a program. If both are `None`, the Job has no MCP server.
#[derive(Debug, Clone)]
pub struct Server {
    /// The address.
    pub mcp: Option<McpEndpoint>,
    /// The program.
    pub program: Option<McpProgram>,
}

/// Returns the MCP server that the options name, if they name one.
///
/// # Errors
/// If it cannot be used.
pub fn from_options(options: &McpOptions) -> Result<Option<Server>, Error> {
    let McpOptions { url, command, env } = options;
    Ok(match url {
        Some(url) => Some(Server { mcp: Some(checked_endpoint(url, "`options.mcp.url`")?), program: None }),
        None if command.is_empty() => None,
        None => {
            let program = McpProgram { argv: command.clone(), env: env.clone() };
            if let Some(fault) = credential::in_arguments(&program.argv) {
                return Err(Error::invalid(format!(
                    "`options.mcp.command`: the argument {fault}, and would be stored in clear text: put the credential into a variable of \
                     the environment, and name the variable with `options.mcp.env` (docs/how-to/bring-your-own-mcp-server.md)"
                )));
            }
            check_program(&program)?;
            Some(Server { mcp: None, program: Some(program) })
        }
    })
}

/// Returns the MCP server of a Skill.
///
/// # Errors
/// If its address cannot be used, or it exists only on a cluster.
pub fn from_skill(skill: &LoadedSkill) -> Result<Server, Error> {
    if let Some(server) = skill.cluster_server() {
        // A server outside of the cluster can be called from here too, unless it needs Secrets of the cluster.
        if let McpServer { uri: Some(uri), headers, ca: None, .. } = server
            && headers.is_empty()
        {
            return Ok(Server { mcp: Some(checked_endpoint(uri, OF_SKILL)?), program: None });
        }
        return Err(Error::invalid(format!(
            "the MCP server of the Skill {} exists only on a cluster: name another one with `options.mcp.url` URL or `options.mcp.command` PROGRAM",
            skill.name
        )));
    }
    let endpoint = skill.mcp.as_deref().map(|url| checked_endpoint(url, OF_SKILL)).transpose()?;
    Ok(Server { mcp: endpoint, program: None })
}

/// Returns a note if a Skill names tools of a server, but the Job has no server.
pub fn missing_note(revision: &Revision, program: Option<&McpProgram>) -> Option<String> {
    let tools = core_tools::server_tools(&revision.spec);
    (revision.mcp.is_none() && program.is_none() && !tools.is_empty()).then(|| {
        format!(
            "the Skill {} runs without its tools {}, because it has no MCP server: name one with `options.mcp.url` URL or `options.mcp.command` PROGRAM",
            revision.skill,
            tools.join(", ")
        )
    })
}

/// Creates the client of an MCP server: a program, or else an address. Returns `None` if there is neither. `listener` receives the standard
/// error of a program.
///
/// # Errors
/// If the address cannot be used.
pub fn client(
    endpoint: Option<&McpEndpoint>,
    program: Option<&McpProgram>,
    listener: StderrListener,
    redactor: &Redactor,
) -> Result<Option<mcp::Client>, http::Error> {
    if let Some(program) = program {
        let env = mcp_environment::environment(program);
        let program = mcp::Program { argv: program.argv.clone(), env, listener };
        return Ok(Some(mcp::Client::program(program, redactor.clone())));
    }
    let Some(endpoint) = endpoint else { return Ok(None) };
    let client = mcp::Client::restricted(AddressPolicy::for_local_machine(), endpoint, redactor.clone())?;
    Ok(Some(client.without_credentials()))
}

/// Checks the URL of an MCP server, and returns its endpoint. `origin` is the option or the object that names it.
fn checked_endpoint(url: &str, origin: &str) -> Result<McpEndpoint, Error> {
    if let Some(fault) = credential::in_url(url) {
        return Err(Error::invalid(format!(
            "{origin}: its URL {fault}, and would be stored in clear text: use a program as a proxy that reads the \
             credential from the environment, with `options.mcp.command` and `options.mcp.env` (docs/how-to/bring-your-own-mcp-server.md)"
        )));
    }
    let route = ClientOptions { addresses: Some(AddressPolicy::for_local_machine()), ..ClientOptions::default() };
    // Building a client checks the URL.
    http::client(url, Duration::ZERO, route).map_err(|error| Error::invalid(format!("{origin}: {error}")))?;
    Ok(McpEndpoint { url: url.to_owned() })
}

/// Checks that a program exists and can be executed, and that its environment is complete.
///
/// # Errors
/// All errors, at once.
pub fn check_program(program: &McpProgram) -> Result<(), Error> {
    let name = program.argv.first().map_or("", String::as_str);
    let path = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let mut errors = Errors::default();
    if let Some(fault) = program_fault(name, &path) {
        errors.add(Error::invalid(format!("`options.mcp.command` {name}: {fault}")));
    }
    errors.collect(mcp_environment::check(program));
    errors.into_result(())
}

/// Returns why a program cannot be started. A name without a slash is looked up in `path`.
fn program_fault(name: &str, path: &OsStr) -> Option<String> {
    if name.contains('/') {
        return file_fault(Path::new(name));
    }
    let candidates: Vec<PathBuf> =
        env::split_paths(path).map(|dir| dir.join(name)).filter(|file| file.is_file()).collect();
    // `None` if one of the files has no fault.
    let faults: Option<Vec<String>> = candidates.iter().map(|file| file_fault(file)).collect();
    faults.map(|faults| faults.into_iter().next().unwrap_or_else(|| "there is no such program in PATH".to_owned()))
}

/// Returns why a file cannot be executed.
fn file_fault(file: &Path) -> Option<String> {
    let shown = file.display();
    match file.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("there is no such program".to_owned()),
        Err(error) => Some(format!("{shown} cannot be run: {error}")),
        Ok(metadata) if !metadata.is_file() => Some(format!("{shown} is not a file")),
        Ok(_) if access(file, Access::EXEC_OK).is_err() => Some(format!("{shown} is not executable: use chmod +x")),
        Ok(_) => {
            let interpreter = interpreter(file).filter(|program| !Path::new(program).exists())?;
            Some(format!("the first line of {shown} names a program that does not exist: {interpreter}"))
        }
    }
}

/// Returns the interpreter in the first line of a script. Returns `None` for a file that is not a script.
fn interpreter(file: &Path) -> Option<String> {
    let mut line = Vec::new();
    BufReader::new(File::open(file).ok()?.take(MAX_FIRST_LINE_BYTES)).read_until(b'\n', &mut line).ok()?;
    let named = line.strip_prefix(b"#!")?;
    Some(String::from_utf8_lossy(named).split_ascii_whitespace().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn one_executable_program_in_path_is_enough() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, content: &str, mode: u32| {
            let file = dir.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        };
        make("a/one", "", 0o644);
        make("b/one", "#! /bin/sh -e\n", 0o755);
        make("a/two", "#!/no/such\n", 0o755);
        make("a/three/in", "", 0o755);
        make("a/four", "\u{7f}ELF", 0o755);
        let path = env::join_paths([dir.path().join("a"), dir.path().join("b")]).unwrap();
        let fault = |name: &str| program_fault(name, &path);
        assert_eq!(fault("one"), None);
        assert_eq!(fault("four"), None);
        assert!(fault("two").unwrap().contains("does not exist: /no/such"));
        for none in ["three", "five", ""] {
            assert_eq!(fault(none).unwrap(), "there is no such program in PATH", "{none}");
        }
        assert!(program_fault("one", dir.path().join("a").as_os_str()).unwrap().contains("is not executable"));
        let slashed = |name: &str| program_fault(dir.path().join(name).to_str().unwrap(), &path);
        assert_eq!(slashed("b/one"), None);
        assert!(slashed("a").unwrap().contains("is not a file"));
        assert!(slashed("a/one/in").unwrap().contains("cannot be run: "));
    }
}
