//! A store that fails after a number of writes, as a crash or a full disk does.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

#[derive(Debug)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    /// Writes that still come through.
    writes: Arc<AtomicI64>,
    /// Whether the last write comes through although it is reported as failed.
    is_last_done: bool,
    message: &'static str,
    /// Whether reads fail too, once writes do: the process is gone.
    is_crash: bool,
}

impl FaultyStore {
    pub fn new(inner: Arc<dyn ObjectStore>, writes: i64, is_last_done: bool) -> FaultyStore {
        let writes = Arc::new(AtomicI64::new(writes));
        FaultyStore { inner, writes, is_last_done, message: "crashed", is_crash: true }
    }

    pub fn full_after(inner: Arc<dyn ObjectStore>, writes: i64) -> FaultyStore {
        let writes = Arc::new(AtomicI64::new(writes));
        FaultyStore { inner, writes, is_last_done: false, message: "No space left on device", is_crash: false }
    }

    fn error(&self) -> object_store::Error {
        object_store::Error::Generic { store: "faulty", source: self.message.into() }
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let left = self.writes.fetch_sub(1, Ordering::SeqCst);
        if left > 0 {
            return self.inner.put_opts(location, payload, options).await;
        }
        if left == 0 && self.is_last_done {
            let _ = self.inner.put_opts(location, payload, options).await;
        }
        Err(self.error())
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, writes, is_crash) = (Arc::clone(&self.inner), Arc::clone(&self.writes), self.is_crash);
        let message = self.message;
        locations
            .then(move |location| {
                let (inner, writes) = (Arc::clone(&inner), Arc::clone(&writes));
                async move {
                    let location = location?;
                    if is_crash && writes.fetch_sub(1, Ordering::SeqCst) <= 0 {
                        return Err(object_store::Error::Generic { store: "faulty", source: message.into() });
                    }
                    inner.delete(&location).await?;
                    Ok(location)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Another store with the same objects.
pub async fn copy(store: &Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
    let copy = InMemory::new();
    let objects: Vec<ObjectMeta> = store.list(None).try_collect().await.unwrap();
    for object in objects {
        let content = store.get(&object.location).await.unwrap().bytes().await.unwrap();
        copy.put(&object.location, content.into()).await.unwrap();
    }
    Arc::new(copy)
}
