//! Reads manifests and skill files of the older format, as `bloomery import` and `bloomery lint` do.
#![no_main]

use bloomery_engine::lint;
use bloomery_skills::{Form, ImportOptions, check_manifest, import, yaml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for document in &yaml::read(data).documents {
        match document.form() {
            Form::Manifest | Form::Foreign => {
                if let Some(skill) = check_manifest(document).skill {
                    let _ = (lint::skill(&skill.spec, []), lint::without_server(&skill.spec));
                }
            }
            Form::Dialect => {
                let options = ImportOptions { name: Some("x".to_owned()), ..ImportOptions::default() };
                let Some(skill) = import(document, &options).skill else { continue };
                let _ = (lint::skill(&skill.spec, []), lint::without_server(&skill.spec));
                let written = serde_yaml::to_string(&skill).expect("a Skill can be written");
                let again = yaml::read(written.as_bytes());
                let [document] = again.documents.as_slice() else { panic!("{:?}: {written}", again.findings) };
                let again = check_manifest(document);
                assert!(again.findings.is_empty(), "{:?}: {written}", again.findings);
                assert_eq!(again.skill, Some(skill));
            }
        }
    }
});
