//! AddArtifacts and ArtifactStatus: what a client uploads, whole or in chunks, each checked by its CRC.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use spark_connect_proto::add_artifacts_request::{ArtifactChunk, BeginChunkedArtifact, Payload};
use spark_connect_proto::add_artifacts_response::ArtifactSummary;
use spark_connect_proto::artifact_statuses_response::ArtifactStatus;
use spark_connect_proto::{
    AddArtifactsRequest, AddArtifactsResponse, ArtifactStatusesRequest, ArtifactStatusesResponse,
};
use tonic::Streaming;

use crate::artifact::Destination;
use crate::session::{SessionRef, Sessions};
use crate::{Error, Result, Session};

/// What became of the stream before its end: an error of ours, or of the connection.
pub enum Broken {
    Error(Error),
    Connection(tonic::Status),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Broken {
        Broken::Error(error)
    }
}

/// Takes the stream in; `first` has been read from it.
pub async fn add(
    sessions: Arc<Sessions>,
    first: AddArtifactsRequest,
    mut rest: Streaming<AddArtifactsRequest>,
) -> Result<AddArtifactsResponse, Broken> {
    let session = sessions.get_or_create(&SessionRef {
        id: &first.session_id,
        user: first.user_context.as_ref(),
        observed: first.client_observed_server_side_session_id.as_deref(),
    })?;
    let mut upload = Upload { session: &session, open: None, summaries: Vec::new() };
    let session_id = first.session_id;
    upload.take(first.payload).await?;
    while let Some(request) = rest.message().await.map_err(Broken::Connection)? {
        upload.take(request.payload).await?;
    }
    if let Some(open) = upload.open {
        let detail = format!("the stream ended with {} chunks missing", open.chunks_left);
        return Err(Error::InvalidArtifactStream { name: open.name, detail }.into());
    }
    Ok(AddArtifactsResponse {
        session_id,
        server_side_session_id: session.server_session_id.clone(),
        artifacts: upload.summaries,
    })
}

struct Upload<'a> {
    session: &'a Session,
    /// The artifact whose chunks are arriving.
    open: Option<Open>,
    summaries: Vec<ArtifactSummary>,
}

struct Open {
    name: String,
    destination: Destination,
    data: BytesMut,
    bytes_expected: usize,
    chunks_left: i64,
    is_intact: bool,
}

impl Upload<'_> {
    async fn take(&mut self, payload: Option<Payload>) -> Result<()> {
        match payload {
            Some(Payload::Batch(batch)) => {
                if let Some(open) = &self.open {
                    let detail = "a batch came between its chunks".to_string();
                    return Err(Error::InvalidArtifactStream { name: open.name.clone(), detail });
                }
                for artifact in batch.artifacts {
                    let destination = Destination::of(&artifact.name)?;
                    let chunk = artifact.data.unwrap_or_default();
                    let is_intact = is_intact(&chunk);
                    self.finish(artifact.name, destination, chunk.data, is_intact).await?;
                }
                Ok(())
            }
            Some(Payload::BeginChunk(begin)) => self.begin(begin).await,
            Some(Payload::Chunk(chunk)) => self.chunk(chunk).await,
            None => Err(Error::NotSet { message: "spark.connect.AddArtifactsRequest", field: "payload" }),
        }
    }

    async fn begin(&mut self, begin: BeginChunkedArtifact) -> Result<()> {
        let invalid = |name: &str, detail: &str| Error::InvalidArtifactStream {
            name: name.to_string(),
            detail: detail.to_string(),
        };
        if let Some(open) = &self.open {
            return Err(invalid(&open.name, "another artifact began between its chunks"));
        }
        let bytes_expected = usize::try_from(begin.total_bytes).map_err(|_| invalid(&begin.name, "negative size"))?;
        let bytes_max = self.session.options().artifact_bytes_max;
        if bytes_expected > self.session.artifacts.bytes_left() {
            return Err(Error::ArtifactsTooLarge { bytes_max });
        }
        if begin.num_chunks < 1 {
            return Err(invalid(&begin.name, "no chunks"));
        }
        self.open = Some(Open {
            destination: Destination::of(&begin.name)?,
            name: begin.name,
            data: BytesMut::new(),
            bytes_expected,
            chunks_left: begin.num_chunks,
            is_intact: true,
        });
        self.chunk(begin.initial_chunk.unwrap_or_default()).await
    }

    async fn chunk(&mut self, chunk: ArtifactChunk) -> Result<()> {
        let Some(mut open) = self.open.take() else {
            let detail = "it belongs to no artifact".to_string();
            return Err(Error::InvalidArtifactStream { name: "chunk".to_string(), detail });
        };
        open.is_intact &= is_intact(&chunk);
        open.chunks_left -= 1;
        open.data.extend_from_slice(&chunk.data);
        if open.data.len() > open.bytes_expected || (open.chunks_left == 0 && open.data.len() < open.bytes_expected) {
            let detail = format!("{} bytes came, {} were announced", open.data.len(), open.bytes_expected);
            return Err(Error::InvalidArtifactStream { name: open.name, detail });
        }
        if open.chunks_left > 0 {
            self.open = Some(open);
            return Ok(());
        }
        self.finish(open.name, open.destination, open.data.freeze(), open.is_intact).await
    }

    /// Stores an artifact that is complete; one whose CRC does not match is only reported.
    async fn finish(&mut self, name: String, destination: Destination, data: Bytes, is_intact: bool) -> Result<()> {
        if is_intact {
            match destination {
                Destination::Cache { hash } => {
                    self.session.artifacts.insert(hash.clone(), data.clone())?;
                    self.session.engine.put_artifact(&name, data);
                }
                Destination::File { path } => self.forward(&path, &data).await?,
                Destination::Module { name } => {
                    self.session.artifacts.count_file(data.len())?;
                    self.session.engine.python_files()?.put_module(&name, &data)?;
                }
                Destination::SessionFile { name } => {
                    self.session.artifacts.count_file(data.len())?;
                    self.session.engine.python_files()?.put(&name, &data)?;
                }
                Destination::Archive { name, folder } => {
                    self.session.artifacts.count_file(data.len())?;
                    self.session.engine.python_files()?.put_archive(&name, &folder, &data).await?;
                }
            }
        }
        self.summaries.push(ArtifactSummary { name, is_crc_successful: is_intact });
        Ok(())
    }

    /// Puts a file on the server's file system, if that is allowed.
    async fn forward(&self, path: &str, data: &Bytes) -> Result<()> {
        if !self.session.options().allow_local_destinations {
            return Err(Error::LocalDestinationOff);
        }
        let io = |source| Error::Io { path: path.to_string(), source };
        if let Some(folder) = std::path::Path::new(path).parent() {
            tokio::fs::create_dir_all(folder).await.map_err(io)?;
        }
        tokio::fs::write(path, data).await.map_err(io)
    }
}

fn is_intact(chunk: &ArtifactChunk) -> bool {
    i64::from(crc32fast::hash(&chunk.data)) == chunk.crc
}

pub async fn status(sessions: Arc<Sessions>, request: ArtifactStatusesRequest) -> Result<ArtifactStatusesResponse> {
    let session = sessions.get_or_create(&SessionRef {
        id: &request.session_id,
        user: request.user_context.as_ref(),
        observed: request.client_observed_server_side_session_id.as_deref(),
    })?;
    let statuses = request.names.into_iter().map(|name| {
        let exists =
            matches!(Destination::of(&name), Ok(Destination::Cache { hash }) if session.artifacts.contains(&hash));
        (name, ArtifactStatus { exists })
    });
    Ok(ArtifactStatusesResponse {
        statuses: statuses.collect(),
        session_id: request.session_id,
        server_side_session_id: session.server_session_id.clone(),
    })
}
