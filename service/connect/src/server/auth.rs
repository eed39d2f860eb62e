//! Who is let in: with a token set, the calls that carry it.

use tonic::service::Interceptor;
use tonic::{Request, Status};

#[derive(Debug, Clone)]
pub struct Auth {
    /// The whole header, `Bearer <token>`.
    header: Option<String>,
}

impl Auth {
    pub fn new(token: Option<String>) -> Auth {
        Auth { header: token.map(|token| format!("Bearer {token}")) }
    }
}

impl Interceptor for Auth {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(expected) = &self.header else { return Ok(request) };
        let found = request.metadata().get("authorization").map(|value| value.as_bytes()).unwrap_or_default();
        if is_same(found, expected.as_bytes()) {
            Ok(request)
        } else {
            Err(Status::unauthenticated("Invalid authentication token"))
        }
    }
}

/// Compares without telling by its time where the first difference is.
fn is_same(found: &[u8], expected: &[u8]) -> bool {
    let difference = found.iter().zip(expected).fold(0, |difference, (left, right)| difference | (left ^ right));
    std::hint::black_box(difference) == 0 && found.len() == expected.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(token: Option<&str>, header: Option<&str>) -> bool {
        let mut request = Request::new(());
        if let Some(header) = header {
            request.metadata_mut().insert("authorization", header.parse().unwrap());
        }
        Auth::new(token.map(str::to_string)).call(request).is_ok()
    }

    #[test]
    fn only_the_right_token_is_let_in() {
        assert!(call(None, None) && call(None, Some("Bearer x")));
        assert!(call(Some("secret"), Some("Bearer secret")));
        for wrong in [None, Some("Bearer secre"), Some("Bearer secrets"), Some("secret"), Some("")] {
            assert!(!call(Some("secret"), wrong), "{wrong:?}");
        }
    }
}
