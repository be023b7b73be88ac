//! Builds the parts of a pod that give an MCP server the public keys of the tokens, so that it can verify them itself.
//!
//! The keys are an annotation of the pod, mounted as a file. So they cost no object of their own, and are restored with the Deployment.

use crate::worker_pod::{part_volume, read_only_mount};
use bloomery_crds::names;
use bloomery_token::{PublicKey, jwks};
use k8s_openapi::api::core::v1::{EnvVar, Volume, VolumeMount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The name of the volume.
const NAME: &str = "jwks";

/// The directory of the file. It is not one that an image has.
const DIR: &str = "/bloomery";

/// The name of the file.
const FILE: &str = "jwks.json";

/// The variable with the path of the file.
const VARIABLE: &str = "BLOOMERY_JWKS_FILE";

/// Adds the annotation to the metadata of a pod.
pub(super) fn annotate(metadata: &mut ObjectMeta, keys: &[PublicKey]) {
    metadata.annotations.get_or_insert_default().insert(names::ANNOTATION_JWKS.to_owned(), jwks(keys));
}

/// Builds the volume with the file.
pub(super) fn volume() -> Volume {
    part_volume(NAME, FILE, names::ANNOTATION_JWKS)
}

/// Builds the mount of the volume.
pub(super) fn mount() -> VolumeMount {
    read_only_mount(NAME, DIR)
}

/// Adds the variable with the path of the file to those of the author, which win.
pub(super) fn add_variable(env: &mut Vec<EnvVar>) {
    if env.iter().all(|variable| variable.name != VARIABLE) {
        let value = Some(format!("{DIR}/{FILE}"));
        env.push(EnvVar { name: VARIABLE.to_owned(), value, value_from: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_tokens::{Keys, ServerTokens};
    use bloomery_token::{SigningKey, Subject};
    use k8s_openapi::jiff::Timestamp;
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    /// The part of a server in Python that verifies tokens, as `docs/how-to/bring-your-own-mcp-server.md` says. It prints the Job of each
    /// token, or the kind of the error.
    const SERVER: &str = r#"
import os, sys
import jwt

with open(os.environ["BLOOMERY_JWKS_FILE"]) as file:
    keys = jwt.PyJWKSet.from_json(file.read())
audience, *tokens = sys.argv[1:]
for token in tokens:
    try:
        key = keys[jwt.get_unverified_header(token)["kid"]].key
        required = {"require": ["exp"]}
        claims = jwt.decode(token, key, algorithms=["EdDSA"], options=required, issuer="bloomery", audience=audience)
        print(claims["job"], claims["sub"])
    except (KeyError, jwt.PyJWTError) as error:
        print(type(error).__name__)
"#;

    /// Returns a Python that has the library `PyJWT`: that of the third-party servers of the worker's tests, which need the library too.
    fn python() -> PathBuf {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hack/third-party");
        let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "hack/third-party failed");
        Path::new(String::from_utf8(output.stdout).unwrap().trim()).join("venv/bin/python")
    }

    /// Returns what the server `acme/orders` prints. It reads the file from its standard input.
    fn verified(file: &str, tokens: &[String]) -> Vec<String> {
        let mut server = Command::new(python())
            .args(["-c", SERVER, "acme/orders"])
            .args(tokens)
            .env(VARIABLE, "/dev/stdin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        server.stdin.take().unwrap().write_all(file.as_bytes()).unwrap();
        let output = server.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Returns an operator's tokens. The first seed is that of the current key, the second one that of the next key.
    fn tokens(seeds: [u8; 2]) -> ServerTokens {
        let [current, next] = seeds.map(|seed| SigningKey::from_seed(&[seed; 32]).unwrap());
        let tokens = ServerTokens::default();
        tokens.set_keys(Keys { current, next });
        tokens
    }

    #[test]
    fn a_library_for_jwt_accepts_the_tokens_of_both_keys_for_its_server_and_no_others() {
        let mut metadata = ObjectMeta::default();
        annotate(&mut metadata, &tokens([1, 2]).public_keys().unwrap());
        let file = metadata.annotations.unwrap().remove(names::ANNOTATION_JWKS).unwrap();

        let now = Timestamp::now();
        let orders = Subject { namespace: "acme", skill: "orders", job: Some("refund"), uid: "u-1" };
        let payments = Subject { skill: "payments", ..orders };
        let an_hour_ago = Timestamp::from_second(now.as_second() - 3600).unwrap();
        let issue =
            |seeds: [u8; 2], subject: Subject<'_>, at: Timestamp| tokens(seeds).issue(subject, at).unwrap().token;
        let (own, of_next_key, of_other_key) =
            (issue([1, 2], orders, now), issue([2, 3], orders, now), issue([4, 5], orders, now));
        // It names a key of the file, and is signed by another one.
        let (content, signature) = (own.rsplit_once('.').unwrap().0, of_other_key.rsplit_once('.').unwrap().1);
        let forged = format!("{content}.{signature}");
        let (for_other_server, expired) = (issue([1, 2], payments, now), issue([1, 2], orders, an_hour_ago));
        assert_eq!(
            verified(&file, &[own, of_next_key, of_other_key, forged, for_other_server, expired]),
            [
                "refund u-1",
                "refund u-1",
                "KeyError",
                "InvalidSignatureError",
                "InvalidAudienceError",
                "ExpiredSignatureError"
            ]
        );
    }
}
