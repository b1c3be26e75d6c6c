//! The MCP handler: one for both eras of the protocol and both transports. It holds no state of a connection but
//! its subscriptions; jobs and cursors are on disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_job::{Failure, Kind};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, GetPromptRequestMethod,
    Implementation, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use crate::answer::failure_text;
use crate::arguments::Arguments;
use crate::calls::{self, Reply};
use crate::confirm::{Confirmed, confirm};
use crate::engine::{Caller, Engine};
use crate::options::Options;
use crate::subscriptions::Subscriptions;
use crate::watch::Watch;
use crate::{resources, session, tools};

/// How long a person may take to answer a question.
const PERSON: Duration = Duration::from_secs(45);

const INSTRUCTIONS: &str = "Commands run as jobs that outlast the call, the conversation and this server. \
    run_shell_command starts one and comes back early with a reason; send_input, wait_for, read_output and kill go on with its \
    handle. Call jobs() when you have lost track of what runs.";

/// The handler.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    engine: Arc<Engine>,
    options: Arc<Options>,
    tools: Arc<Vec<Tool>>,
    subscriptions: Arc<Subscriptions>,
}

impl Server {
    pub(crate) fn new(options: Options) -> Result<Self, Failure> {
        let engine = Arc::new(Engine::open(&options)?);
        let tools = Arc::new(tools::of(options.profile));
        Ok(Self { engine, options: Arc::new(options), tools, subscriptions: Arc::default() })
    }

    /// The same server for another connection.
    pub(crate) fn for_connection(&self) -> Self {
        Self { subscriptions: Arc::default(), ..self.clone() }
    }

    pub(crate) fn home(&self) -> &outlast_job::registry::Home {
        self.engine.outlast.home()
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Asks a person if need be; none means that the call can go on as it is.
    async fn ask_first(
        &self,
        request: &CallToolRequestParams,
        arguments: &Arguments,
        caller: &mut Caller,
        context: &RequestContext<RoleServer>,
    ) -> Option<CallToolResponse> {
        let (job, verb) = calls::touched(&self.engine, &request.name, arguments)?;
        let info = job.info().ok().filter(|info| info.session != caller.session && info.state.is_live())?;
        let handle = info.handle;
        let question =
            format!("May I {verb} job {handle}, which belongs to {}?\n$ {}", info.session, info.command);
        match confirm(question, request, context, PERSON).await {
            Confirmed::Yes => caller.confirmed = true,
            Confirmed::Unable => {
                caller.confirmed = arguments.flag("confirmed").ok().flatten().unwrap_or(false)
            }
            Confirmed::Ask(question) => return Some((*question).into()),
            Confirmed::No => {
                let refused =
                    Failure::new(Kind::Denied, format!("the user did not agree to {verb} job {handle}"))
                        .hint("leave it alone, or ask them what to do");
                return Some(error(&refused).into());
            }
        }
        None
    }

    /// Runs what blocks in a thread of its own; meanwhile reports progress and listens for a cancellation.
    async fn blocking(
        &self,
        caller: Caller,
        (name, arguments): (String, Arguments),
        context: &RequestContext<RoleServer>,
    ) -> Result<Reply, Failure> {
        let (engine, watch) = (Arc::clone(&self.engine), Arc::clone(&caller.watch));
        let session = caller.session.clone();
        let mut work =
            tokio::task::spawn_blocking(move || calls::call(&engine, &caller, (name.as_str(), &arguments)));
        let began = Instant::now();
        let token = context.meta.get_progress_token();
        let mut cancelled = false;
        loop {
            tokio::select! {
                done = &mut work => {
                    return done.unwrap_or_else(|error| Err(Failure::system("the call broke off", error)));
                }
                () = context.ct.cancelled(), if !cancelled => {
                    cancelled = true;
                    watch.cancel();
                    // Noted at once, so that the client's very next call can tell of it.
                    self.engine.note_cancelled(&session, &watch);
                }
                () = tokio::time::sleep(self.options.progress_every), if !cancelled => {
                    if let Some(token) = &token {
                        self.report(token.clone(), began, &watch, context).await;
                    }
                }
            }
        }
    }

    async fn report(
        &self,
        token: ProgressToken,
        began: Instant,
        watch: &Watch,
        context: &RequestContext<RoleServer>,
    ) {
        let elapsed = began.elapsed().as_secs_f64();
        let message = match watch.about() {
            Some(handle) => {
                let end = self.engine.job(&handle.to_string()).map_or(0, |job| job.log_end());
                format!("job {handle}: {elapsed:.0} s, {end} bytes of output so far")
            }
            None => format!("{elapsed:.0} s"),
        };
        let progress = ProgressNotificationParam::new(token, elapsed).with_message(message);
        // Whoever can't hear it gets everything in the result too.
        let _ = context.peer.notify_progress(progress).await;
    }
}

fn error(failure: &Failure) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(failure_text(failure))])
}

fn success(reply: Reply) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(reply.text)]);
    result.structured_content = Some(reply.facts);
    result
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("outlast", env!("CARGO_PKG_VERSION"))
                    .with_title("Outlast")
                    .with_description("A shell whose jobs outlast the call, the conversation and a crash"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.engine.outlast.get_ready();
        Ok(ListToolsResult { tools: self.tools.to_vec(), ..ListToolsResult::default() })
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tool(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tool(&request.name) else {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_ref()).collect();
            let message = format!("there is no tool {:?}; there are {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = Arguments::new(request.arguments.clone());
        let unknown = arguments.unknown(&tools::parameters(tool));
        let watch = match Watch::new() {
            Ok(watch) => Arc::new(watch),
            Err(failure) => return Ok(error(&failure).into()),
        };
        let session = session::of(self.options.session.as_deref(), &context);
        let mut caller = Caller { session, confirmed: false, watch };
        if let Some(response) = self.ask_first(&request, &arguments, &mut caller, &context).await {
            return Ok(response);
        }
        Ok(match self.blocking(caller, (request.name.to_string(), arguments), &context).await {
            Ok(mut reply) => {
                for name in unknown.iter().filter(|name| *name != "confirmed") {
                    reply
                        .text
                        .push_str(&format!("\nnote: this tool has no parameter {name:?}; it was ignored"));
                }
                success(reply).into()
            }
            Err(failure) => error(&failure).into(),
        })
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn get_prompt(
        &self,
        _request: rmcp::model::GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::GetPromptResponse, ErrorData> {
        Err(ErrorData::method_not_found::<GetPromptRequestMethod>())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let session = session::of(self.options.session.as_deref(), &context);
        let engine = Arc::clone(&self.engine);
        let resources = tokio::task::spawn_blocking(move || resources::list(&engine, &session)).await;
        Ok(ListResourcesResult { resources: resources.unwrap_or_default(), ..ListResourcesResult::default() })
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult {
            resource_templates: resources::templates(),
            ..ListResourceTemplatesResult::default()
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || resources::read(&engine, &request.uri))
            .await
            .unwrap_or_else(|error| Err(ErrorData::internal_error(error.to_string(), None)))
            .map(ReadResourceResponse::from)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.begin(&self.engine, &request.uri, context.peer)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.end(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let known = |uri: &&String| resources::job_of(&self.engine, uri).is_ok();
        let uris = requested.resource_subscriptions.iter().flatten().filter(known).cloned();
        Some(SubscriptionFilter::builder().resource_subscriptions(uris).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        crate::subscriptions::listen(&self.engine, context).await
    }
}
