//! Files that people write: manifests and the dialect of the seeds, as `bloomery import` and `bloomery lint` read them.
#![no_main]

use bloomery_engine::lint;
use bloomery_skills::{Form, Options, import, manifest, yaml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for document in &yaml::read(data).documents {
        match document.form() {
            Form::Manifest | Form::Foreign => {
                if let Some(skill) = manifest(document).skill {
                    let _ = lint::skill(&skill.spec);
                }
            }
            Form::Dialect => {
                let options = Options { name: Some("x".to_owned()), ..Options::default() };
                let Some(skill) = import(document, &options).skill else { continue };
                let _ = lint::skill(&skill.spec);
                let written = serde_yaml::to_string(&skill).expect("a Skill can be written");
                let again = yaml::read(written.as_bytes());
                let [document] = again.documents.as_slice() else { panic!("{:?}: {written}", again.violations) };
                let again = manifest(document);
                assert!(again.violations.is_empty(), "{:?}: {written}", again.violations);
                assert_eq!(again.skill, Some(skill));
            }
        }
    }
});
