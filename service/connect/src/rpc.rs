//! One file a method of the service: a request in, an answer or an error out.

pub mod analyze_plan;
pub mod artifacts;
pub mod clone_session;
pub mod config;
pub mod execute_plan;
pub mod fetch_error_details;
pub mod get_status;
pub mod interrupt;
pub mod reattach;
pub mod release;
