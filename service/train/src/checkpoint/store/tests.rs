//! Checkpoints in a folder of this machine.

use std::path::Path as File;

use tempfile::TempDir;

use super::*;

const IDENTITY: fn() -> Identity = || Identity { program: "tests", fingerprint: b"one fit".to_vec() };

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn place(folder: &TempDir, keep: usize) -> Place {
    let folder = folder.path().join("job").display().to_string();
    Place { folder, resume_from: None, interval: 1, keep }
}

fn names(place: &Place) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(&place.folder) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Saves these steps one after the other, each written before the next.
fn saved(runtime: &Handle, place: &Place, steps: &[u64]) {
    let store = Store::open(place.clone(), runtime.clone()).unwrap();
    for step in steps {
        store.save(&IDENTITY(), *step, vec![*step as u8; 100]);
        store.flush();
    }
}

fn loaded(runtime: &Handle, place: &Place) -> Result<Option<Saved>> {
    Store::open(place.clone(), runtime.clone()).unwrap().load(&IDENTITY())
}

fn cut(file: &File) {
    let bytes = std::fs::read(file).unwrap();
    std::fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
}

#[test]
fn the_newest_are_kept_and_the_last_is_resumed_from() {
    let (folder, runtime) = (TempDir::new().unwrap(), runtime());
    let place = place(&folder, 2);
    assert_eq!(loaded(runtime.handle(), &place).unwrap(), None);
    assert!(names(&place).is_empty(), "nothing is made before the first checkpoint");
    saved(runtime.handle(), &place, &[9, 10, 100]);
    assert_eq!(names(&place), ["000000000010.checkpoint", "000000000100.checkpoint"]);
    assert_eq!(loaded(runtime.handle(), &place).unwrap(), Some(Saved { step: 100, state: vec![100; 100] }));
}

#[test]
fn a_file_that_is_cut_off_or_foreign_is_passed_over_for_the_one_before() {
    let (folder, runtime) = (TempDir::new().unwrap(), runtime());
    let place = place(&folder, 5);
    saved(runtime.handle(), &place, &[1, 2, 3]);
    cut(&File::new(&place.folder).join("000000000003.checkpoint"));
    std::fs::write(File::new(&place.folder).join("000000000004.checkpoint"), b"something else altogether, really").unwrap();
    assert_eq!(loaded(runtime.handle(), &place).unwrap().unwrap().step, 2);
}

#[test]
fn what_the_user_names_is_resumed_from_or_refused_with_the_reason() {
    let (folder, runtime) = (TempDir::new().unwrap(), runtime());
    let old = place(&folder, 5);
    saved(runtime.handle(), &old, &[1, 2]);
    let other = TempDir::new().unwrap();
    let from = |name: String| loaded(runtime.handle(), &Place { resume_from: Some(name), ..place(&other, 5) });
    assert_eq!(from(old.folder.clone()).unwrap().unwrap().step, 2);
    let file = format!("{}/000000000001.checkpoint", old.folder);
    assert_eq!(from(file.clone()).unwrap().unwrap().step, 1);
    assert_eq!(from(format!("file://{}", old.folder)).unwrap().unwrap().step, 2);
    cut(File::new(&file));
    let refusals = [
        (file, "cut off or damaged"),
        (format!("{}/nowhere", old.folder), "there is no checkpoint"),
        ("relative".into(), "expected an absolute path or a URL"),
        ("gopher://host/x".into(), "gopher"),
    ];
    for (name, reason) in refusals {
        let error = from(name.clone()).unwrap_err().to_string();
        assert!(error.contains(&name) && error.contains(reason), "{error}");
    }
    let stranger = Identity { program: "tests", fingerprint: b"another fit".to_vec() };
    let store = Store::open(Place { resume_from: Some(old.folder), ..place(&other, 5) }, runtime.handle().clone()).unwrap();
    let error = store.load(&stranger).unwrap_err();
    assert!(error.to_string().contains("is of another fit: one fit, expected another fit"), "{error}");
}

#[test]
fn a_job_prefers_what_it_wrote_itself() {
    let (folder, other, runtime) = (TempDir::new().unwrap(), TempDir::new().unwrap(), runtime());
    let (old, own) = (place(&folder, 5), place(&other, 5));
    saved(runtime.handle(), &old, &[7]);
    let own = Place { resume_from: Some(old.folder), ..own };
    assert_eq!(loaded(runtime.handle(), &own).unwrap().unwrap().step, 7);
    saved(runtime.handle(), &own, &[3]);
    assert_eq!(loaded(runtime.handle(), &own).unwrap().unwrap().step, 3);
}
