//! What a server can offer besides its tools and jobs. A released one offers nothing more; a build with the feature
//! `conformance` has what the public conformance suite asks for.

use std::fmt::Debug;
use std::pin::Pin;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse, Prompt,
    ReadResourceResult, Resource, ResourceTemplate, Tool,
};
use rmcp::service::RequestContext;

/// The answer to a call; none when it is not about the extras.
pub type ExtraAnswer<'a> =
    Pin<Box<dyn Future<Output = Option<Result<CallToolResponse, ErrorData>>> + Send + 'a>>;

/// More tools, prompts and resources.
pub trait Extras: Debug + Send + Sync {
    /// Tools besides our own.
    fn tools(&self) -> Vec<Tool>;

    /// Turns a call into one of our own tools, where it is another name for it.
    fn translate(&self, request: &mut CallToolRequestParams);

    /// Answers a call.
    fn call<'a>(
        &'a self,
        request: &'a CallToolRequestParams,
        context: &'a RequestContext<RoleServer>,
    ) -> ExtraAnswer<'a>;

    /// The prompts.
    ///
    /// # Errors
    /// When they are not valid.
    fn prompts(&self) -> Result<Vec<Prompt>, ErrorData>;

    /// One prompt.
    ///
    /// # Errors
    /// When there is no such prompt, or its arguments are missing.
    fn prompt(&self, request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData>;

    /// Resources besides the jobs.
    fn resources(&self) -> Vec<Resource>;

    /// Templates of resources.
    fn templates(&self) -> Vec<ResourceTemplate>;

    /// What a resource holds; none when it is not one of these.
    fn read(&self, uri: &str) -> Option<Result<ReadResourceResult, ErrorData>>;

    /// Whether a resource can be subscribed to.
    fn is_watched(&self, uri: &str) -> bool;
}
