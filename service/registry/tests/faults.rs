//! The registry under faults: crashes between any two writes, writers at once, damaged files, a store that is full.

#[path = "faults/store.rs"]
mod store;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use registry::{Error, Intent, ModelName, Publish, Registry, ServerIdentity};
use store::FaultyStore;

fn registry(store: Arc<dyn ObjectStore>) -> Registry {
    Registry::new(store, Path::from("root"), ServerIdentity::of_this_process())
}

fn name(text: &str) -> ModelName {
    ModelName::new("default", text).unwrap()
}

fn files(content: &str) -> registry::Files {
    vec![
        ("version.json".into(), Bytes::from(format!("{{\"content\": \"{content}\"}}"))),
        ("model/data/part-0".into(), Bytes::from(content.repeat(50))),
    ]
}

async fn train(registry: &Registry, model: &ModelName, content: &str) -> registry::Result<u32> {
    let training_id = uuid();
    registry.reserve(model, &training_id, Intent::Replace).await?;
    let staged = registry.stage(&files(content)).await?;
    let how = Publish { training_id, may_exist: true, ..Publish::default() };
    registry.publish(model, &staged, &how).await.map(|(version, _)| version)
}

fn uuid() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// What a model holds: versions with their first file's text, the default, aliases and tags.
type State = BTreeMap<String, (Vec<(u32, String)>, Option<u32>, BTreeMap<String, u32>, BTreeMap<String, String>)>;

async fn state(registry: &Registry) -> State {
    let mut state = State::new();
    for manifest in registry.models(None).await.unwrap() {
        let mut versions = Vec::new();
        for entry in &manifest.versions {
            let files = registry.files(entry).await.unwrap();
            versions.push((entry.version, String::from_utf8(files[1].1.to_vec()).unwrap()));
        }
        let content = (versions, manifest.default_version, manifest.aliases.clone(), manifest.tags.clone());
        assert!(state.insert(manifest.name.name.clone(), content).is_none(), "a model is there twice");
    }
    state
}

/// One random change.
async fn change(registry: &Registry, random: &mut StdRng) -> registry::Result<()> {
    let model = name(["a", "b", "c"][random.random_range(0..3)]);
    let version = random.random_range(1..4u32).to_string();
    match random.random_range(0..9) {
        0..=2 => train(registry, &model, &format!("{}", random.random_range(0..1000))).await.map(drop),
        3 => registry.set_alias(&model, ["x", "y"][random.random_range(0..2)], &version).await,
        4 => registry.set_tags(&model, &BTreeMap::from([("k".into(), version)])).await,
        5 => registry.set_default(&model, &version).await,
        6 => registry.drop_version(&model, &version).await.map(drop),
        7 => registry.drop_model(&model).await.map(drop),
        _ => registry.rename(&model, &name(["a", "b", "c"][random.random_range(0..3)])).await,
    }
}

#[tokio::test]
async fn a_crash_at_any_of_a_thousand_points_leaves_the_old_state_or_the_new_one() {
    let mut crashes = 0;
    let mut seed = 0;
    while crashes < 1000 {
        seed += 1;
        let mut random = StdRng::seed_from_u64(seed);
        let disk: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let sound = registry(Arc::clone(&disk));
        for _ in 0..random.random_range(0..6) {
            let _ = change(&sound, &mut random).await;
        }
        let before = state(&sound).await;
        // What the change would come to without a crash, on a copy.
        let copy = registry(store::copy(&disk).await);
        let outcome = change(&copy, &mut random.clone()).await;
        let after = state(&copy).await;
        let writes = random.clone().random_range(1..6);
        let faulty = registry(Arc::new(FaultyStore::new(Arc::clone(&disk), writes, seed % 2 == 0)));
        let crashed = change(&faulty, &mut random).await;
        let survivor = registry(Arc::clone(&disk));
        let found = state(&survivor).await;
        assert!(found == before || found == after, "seed {seed}: {before:?} -> {found:?}, expected {after:?}");
        match crashed {
            Ok(()) => assert_eq!(found, after, "seed {seed}: reported as done"),
            Err(Error::Write { .. }) => crashes += 1,
            Err(error) => assert!(outcome.is_err(), "seed {seed}: {error}"),
        }
        // whoever comes next is not held up
        train(&survivor, &name("a"), "next").await.unwrap();
        survivor.sweep(Duration::ZERO).await.unwrap();
        assert!(
            state(&survivor).await["a"].0.iter().any(|(_, content)| content.starts_with("nextnext")),
            "seed {seed}"
        );
    }
}

#[tokio::test]
async fn two_writers_lose_nothing_of_each_other() {
    for (what, disk) in [
        ("memory", Arc::new(InMemory::new()) as Arc<dyn ObjectStore>),
        (
            "local",
            Arc::new(
                object_store::local::LocalFileSystem::new_with_prefix(tempfile::tempdir().unwrap().keep()).unwrap(),
            ),
        ),
    ] {
        let model = name("m");
        let writer = |writer: usize| {
            let (registry, model) = (registry(Arc::clone(&disk)), model.clone());
            tokio::spawn(async move {
                for n in 0..15 {
                    train(&registry, &model, &format!("{writer}-{n} ")).await.unwrap();
                    registry.set_tags(&model, &BTreeMap::from([(format!("{writer}-{n}"), "t".into())])).await.unwrap();
                }
            })
        };
        let writers: Vec<_> = (0..4).map(writer).collect();
        for writer in writers {
            writer.await.unwrap();
        }
        let state = state(&registry(Arc::clone(&disk))).await;
        let (versions, _, _, tags) = &state["m"];
        assert_eq!(
            versions.iter().map(|(version, _)| *version).collect::<Vec<_>>(),
            (1..=60).collect::<Vec<_>>(),
            "{what}"
        );
        let mut contents: Vec<_> = versions.iter().map(|(_, content)| content.clone()).collect();
        contents.sort();
        contents.dedup();
        assert_eq!((contents.len(), tags.len()), (60, 60), "{what}");
    }
}

#[tokio::test]
async fn damaged_files_are_named() {
    let disk: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let registry = registry(Arc::clone(&disk));
    let model = name("m");
    train(&registry, &model, "content").await.unwrap();
    let manifest = registry.model(&model).await.unwrap();
    let entry = manifest.version("").unwrap().clone();
    let part = Path::from(format!("root/versions/{}/model/data/part-0", entry.folder));
    let whole = disk.get(&part).await.unwrap().bytes().await.unwrap();
    let put = |path: &Path, content: Bytes| {
        let (disk, path) = (Arc::clone(&disk), path.clone());
        async move { disk.put(&path, PutPayload::from(content)).await.unwrap() }
    };
    let check = |error: Error, part: &str, words: &str| match error {
        Error::Corrupted { path, detail } => {
            assert!(path.ends_with(part) && detail.contains(words), "{path}: {detail}");
        }
        other => panic!("{other:?}"),
    };
    put(&part, whole.slice(..whole.len() / 2)).await;
    check(registry.files(&entry).await.unwrap_err(), "part-0", "bytes");
    put(&part, Bytes::from("X".repeat(whole.len()))).await;
    check(registry.files(&entry).await.unwrap_err(), "part-0", "checksum");
    disk.delete(&part).await.unwrap();
    check(registry.files(&entry).await.unwrap_err(), "part-0", "missing");
    let list = Path::from(format!("root/versions/{}/files.json", entry.folder));
    put(&list, Bytes::from("{\"format\": 1, \"fil")).await;
    check(registry.files(&entry).await.unwrap_err(), "files.json", "EOF");

    let folder = Path::from("root/models/default/m");
    let newest = folder.clone().join(format!("manifest-{:020}.json", 99));
    put(&newest, Bytes::from("{\"format\": 7}")).await;
    let error = registry.model(&model).await.unwrap_err();
    assert!(matches!(error, Error::UnknownFormat { found: 7, supported: 1, .. }), "{error:?}");
    assert!(train(&registry, &model, "more").await.is_err(), "what is not understood is not changed");
    put(&newest, Bytes::from("{\"format\": 1, \"name")).await;
    check(registry.model(&model).await.unwrap_err(), "00099.json", "EOF");
}

#[tokio::test]
async fn a_full_store_is_one_clear_error_and_changes_nothing() {
    let disk: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let model = name("m");
    train(&registry(Arc::clone(&disk)), &model, "first").await.unwrap();
    for writes in 0..4 {
        let full = registry(Arc::new(FaultyStore::full_after(Arc::clone(&disk), writes)));
        let error = train(&full, &model, "second").await.unwrap_err();
        let Error::Write { path, source } = error else { panic!("{error:?}") };
        assert!(path.starts_with("root/") && source.to_string().contains("No space left"), "{path}: {source}");
        assert_eq!(state(&registry(Arc::clone(&disk))).await["m"].0.len(), 1);
    }
}

#[tokio::test]
async fn a_name_is_reserved_until_its_training_or_its_server_ends() {
    let disk: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let ours = registry(Arc::clone(&disk));
    let model = name("m");
    ours.reserve(&model, "t1", Intent::Create).await.unwrap();
    for intent in [Intent::Create, Intent::Replace] {
        let error = ours.reserve(&model, "t2", intent).await.unwrap_err();
        assert!(matches!(error, Error::TrainingInProgress { training_id, .. } if training_id == "t1"));
    }
    assert!(matches!(ours.model(&model).await.unwrap_err(), Error::TrainingInProgress { .. }));
    assert!(ours.models(None).await.unwrap().is_empty());
    ours.release(&model, "t1").await.unwrap();
    assert!(matches!(ours.model(&model).await.unwrap_err(), Error::ModelNotFound { .. }));

    // Two replacements at once share the name.
    ours.reserve(&model, "t3", Intent::Replace).await.unwrap();
    ours.reserve(&model, "t4", Intent::Replace).await.unwrap();
    ours.release(&model, "t3").await.unwrap();
    ours.release(&model, "t4").await.unwrap();

    // A server whose process is gone holds nothing.
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    let pid = gone.id();
    gone.wait().unwrap();
    let mut identity = serde_json::to_value(ServerIdentity::of_this_process()).unwrap();
    identity["pid"] = pid.into();
    identity["id"] = "gone".into();
    let theirs = Registry::new(Arc::clone(&disk), Path::from("root"), serde_json::from_value(identity).unwrap());
    theirs.reserve(&model, "t5", Intent::Create).await.unwrap();
    ours.reserve(&model, "t6", Intent::Create).await.unwrap();
}

#[tokio::test]
async fn versions_are_kept_dropped_and_never_numbered_again() {
    let registry = registry(Arc::new(InMemory::new()));
    let model = name("M");
    for content in ["1", "2", "3"] {
        train(&registry, &model, content).await.unwrap();
    }
    registry.set_alias(&model, "champion", "2").await.unwrap();
    assert!(matches!(registry.drop_version(&model, "3").await.unwrap_err(), Error::VersionInUse { version: 3, .. }));
    registry.set_default(&model, "champion").await.unwrap();
    registry.drop_version(&model, "latest").await.unwrap();
    assert_eq!(train(&registry, &name("m"), "4").await.unwrap(), 4);
    let manifest = registry.model(&name("m")).await.unwrap();
    assert_eq!(manifest.versions.iter().map(|entry| entry.version).collect::<Vec<_>>(), [1, 2, 4]);
    assert_eq!((manifest.default_version, manifest.aliases["champion"]), (Some(4), 2));
    registry.rename(&model, &name("n")).await.unwrap();
    assert!(matches!(registry.model(&model).await.unwrap_err(), Error::ModelNotFound { .. }));
    assert_eq!(registry.model(&name("N")).await.unwrap().versions.len(), 3);
    registry.drop_model(&name("n")).await.unwrap();
    assert_eq!(train(&registry, &name("n"), "1").await.unwrap(), 1);
}
