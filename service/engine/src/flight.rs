//! Partitions on the wire: a stream is registered under a ticket, and whoever holds the ticket reads it once, as Arrow
//! Flight's `DoGet`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse,
    PollInfo, PutResult, SchemaResult,
};
use datafusion::execution::SendableRecordBatchStream;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

use crate::{Error, Result};

/// Bytes of one Flight message; larger batches are cut. Few large messages are fastest.
const MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// HTTP/2 windows: the sender must not wait for the receiver within a message.
pub const WINDOW_BYTES: u32 = 64 * 1024 * 1024;
/// HTTP/2 frames as large as the protocol allows.
pub const FRAME_BYTES: u32 = (1 << 24) - 1;
/// How long a stream waits to be read, unless said otherwise.
pub const TICKET_LIFE: Duration = Duration::from_secs(600);

/// The right to read one stream, once. Holding it is all it takes, so it is not shown in logs.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Ticket(String);

impl Ticket {
    fn random() -> Ticket {
        // Two of them: a UUID has 122 random bits.
        Ticket(format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Ticket {
    fn from(text: String) -> Ticket {
        Ticket(text)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(..)")
    }
}

struct Registered {
    stream: SendableRecordBatchStream,
    expires: Instant,
}

/// Serves registered streams. Clones serve the same ones.
#[derive(Clone)]
pub struct PartitionServer {
    registered: Arc<Mutex<HashMap<Ticket, Registered>>>,
    ticket_life: Duration,
}

impl Default for PartitionServer {
    fn default() -> PartitionServer {
        PartitionServer::new(TICKET_LIFE)
    }
}

impl fmt::Debug for PartitionServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionServer").field("registered", &self.registered.lock().len()).finish_non_exhaustive()
    }
}

impl PartitionServer {
    pub fn new(ticket_life: Duration) -> PartitionServer {
        PartitionServer { registered: Arc::default(), ticket_life }
    }

    /// Holds a stream until its ticket is presented, revoked or too old.
    pub fn register(&self, stream: SendableRecordBatchStream) -> Ticket {
        let ticket = Ticket::random();
        let now = Instant::now();
        let mut registered = self.registered.lock();
        registered.retain(|_, held| held.expires > now);
        registered.insert(ticket.clone(), Registered { stream, expires: now + self.ticket_life });
        ticket
    }

    /// Drops a stream that has not been asked for; whether there was one.
    pub fn revoke(&self, ticket: &Ticket) -> bool {
        self.registered.lock().remove(ticket).is_some()
    }

    /// The gRPC service, to be added to a server whose windows and frames are [`WINDOW_BYTES`] and [`FRAME_BYTES`].
    pub fn service(&self) -> FlightServiceServer<PartitionServer> {
        FlightServiceServer::new(self.clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX)
    }

    fn take(&self, ticket: &Ticket) -> Option<SendableRecordBatchStream> {
        let held = self.registered.lock().remove(ticket)?;
        (held.expires > Instant::now()).then_some(held.stream)
    }
}

/// A partition as the worker reads it.
pub struct PartitionReader {
    schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch>>,
}

impl fmt::Debug for PartitionReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionReader").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PartitionReader {
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Stream for PartitionReader {
    type Item = Result<RecordBatch>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.batches.poll_next_unpin(context)
    }
}

/// Reads the stream of a ticket from the server at `uri`, such as `http://127.0.0.1:15003`.
///
/// # Errors
/// [`Error::Flight`]: no server there, or no such ticket.
pub async fn fetch(uri: &str, ticket: &Ticket) -> Result<PartitionReader> {
    let unreachable = |error: tonic::transport::Error| Error::Flight {
        uri: uri.to_owned(),
        source: Box::new(FlightError::ExternalError(Box::new(error))),
    };
    let endpoint = Endpoint::from_shared(uri.to_owned())
        .map_err(unreachable)?
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES);
    let channel = endpoint.connect().await.map_err(unreachable)?;
    fetch_over(channel, uri, ticket).await
}

/// [`fetch`] over a channel that stands, one with TLS for example; `uri` is for messages.
///
/// # Errors
/// [`Error::Flight`].
pub async fn fetch_over(channel: Channel, uri: &str, ticket: &Ticket) -> Result<PartitionReader> {
    let failed = |source: FlightError| Error::Flight { uri: uri.to_owned(), source: Box::new(source) };
    let mut client = FlightServiceClient::new(channel)
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX);
    let ticket = arrow_flight::Ticket { ticket: ticket.0.clone().into() };
    let response = client.do_get(ticket).await.map_err(|status| failed(status.into()))?;
    let messages = response.into_inner().map_err(FlightError::from);
    let mut decoded = FlightRecordBatchStream::new_from_flight_data(messages);
    // The first message is the schema; the first batch may be long in coming.
    let mut first = None;
    if decoded.schema().is_none() {
        first = decoded.next().await;
    }
    let schema = match (&first, decoded.schema()) {
        (_, Some(schema)) => Arc::clone(schema),
        (Some(Ok(batch)), None) => batch.schema(),
        (Some(Err(_)), None) | (None, None) => match first {
            Some(Err(error)) => return Err(failed(error)),
            _ => return Err(failed(FlightError::ProtocolError("stream without a schema".into()))),
        },
    };
    let uri = uri.to_owned();
    let batches = futures::stream::iter(first)
        .chain(decoded)
        .map_err(move |source| Error::Flight { uri: uri.clone(), source: Box::new(source) })
        .boxed();
    Ok(PartitionReader { schema, batches })
}

fn unsupported<T>(method: &str) -> std::result::Result<T, Status> {
    Err(Status::unimplemented(format!("{method}: partitions are read with DoGet")))
}

#[tonic::async_trait]
impl FlightService for PartitionServer {
    type HandshakeStream = BoxStream<'static, std::result::Result<HandshakeResponse, Status>>;
    type ListFlightsStream = BoxStream<'static, std::result::Result<FlightInfo, Status>>;
    type DoGetStream = BoxStream<'static, std::result::Result<FlightData, Status>>;
    type DoPutStream = BoxStream<'static, std::result::Result<PutResult, Status>>;
    type DoActionStream = BoxStream<'static, std::result::Result<arrow_flight::Result, Status>>;
    type ListActionsStream = BoxStream<'static, std::result::Result<ActionType, Status>>;
    type DoExchangeStream = BoxStream<'static, std::result::Result<FlightData, Status>>;

    async fn do_get(
        &self,
        request: Request<arrow_flight::Ticket>,
    ) -> std::result::Result<Response<Self::DoGetStream>, Status> {
        let ticket = String::from_utf8(request.into_inner().ticket.to_vec())
            .map_err(|_| Status::invalid_argument("ticket is no text"))?;
        let stream = self.take(&Ticket(ticket)).ok_or_else(|| Status::not_found("no such ticket, or it was used"))?;
        let schema = stream.schema();
        let batches = stream.map_err(|error| FlightError::ExternalError(Box::new(Error::from(error))));
        let messages = FlightDataEncoderBuilder::new()
            .with_schema(schema)
            .with_max_flight_data_size(MESSAGE_BYTES)
            .build(batches)
            .map_err(|error| match error {
                FlightError::ExternalError(error) => Status::internal(error.to_string()),
                other => Status::from(other),
            });
        Ok(Response::new(messages.boxed()))
    }

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> std::result::Result<Response<Self::HandshakeStream>, Status> {
        unsupported("Handshake")
    }

    async fn list_flights(
        &self,
        _: Request<Criteria>,
    ) -> std::result::Result<Response<Self::ListFlightsStream>, Status> {
        unsupported("ListFlights")
    }

    async fn get_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> std::result::Result<Response<FlightInfo>, Status> {
        unsupported("GetFlightInfo")
    }

    async fn poll_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> std::result::Result<Response<PollInfo>, Status> {
        unsupported("PollFlightInfo")
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> std::result::Result<Response<SchemaResult>, Status> {
        unsupported("GetSchema")
    }

    async fn do_put(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> std::result::Result<Response<Self::DoPutStream>, Status> {
        unsupported("DoPut")
    }

    async fn do_action(&self, _: Request<Action>) -> std::result::Result<Response<Self::DoActionStream>, Status> {
        unsupported("DoAction")
    }

    async fn list_actions(&self, _: Request<Empty>) -> std::result::Result<Response<Self::ListActionsStream>, Status> {
        unsupported("ListActions")
    }

    async fn do_exchange(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> std::result::Result<Response<Self::DoExchangeStream>, Status> {
        unsupported("DoExchange")
    }
}
