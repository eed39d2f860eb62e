//! Models in folders: read as Spark left them, written and read again.

use std::path::Path;
use std::sync::Arc;

use ml::{Kind, Model, Params, Result, persist};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;

fn read(store: &dyn ObjectStore, prefix: &object_store::path::Path) -> Result<Arc<dyn Model>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let loaded = runtime.block_on(persist::read_operator(store, prefix))?;
    let operator = ml::catalog::operator(&loaded.class)?;
    let params = Params::from_json(operator, &loaded.uid, &loaded.explicit)?;
    let Kind::Estimator(estimator) = operator.kind else { panic!("{} has no model", loaded.class) };
    estimator.load(operator, &params, &loaded.saved)
}

/// # Errors
/// What cannot be read.
pub fn load(folder: &Path) -> Result<Arc<dyn Model>> {
    let root = folder.parent().unwrap();
    let store = LocalFileSystem::new_with_prefix(root).unwrap();
    read(&store, &folder.file_name().unwrap().to_str().unwrap().into())
}

fn write(store: &dyn ObjectStore, prefix: &object_store::path::Path, model: &Arc<dyn Model>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let saved = model.save()?;
    runtime.block_on(persist::write_operator(store, prefix, model.class(), model.params(), &saved, true))
}

/// # Errors
/// What cannot be written or read.
pub fn save_and_load(model: &Arc<dyn Model>) -> Result<Arc<dyn Model>> {
    let (store, prefix) = (InMemory::new(), object_store::path::Path::from("models/one"));
    write(&store, &prefix, model)?;
    read(&store, &prefix)
}
