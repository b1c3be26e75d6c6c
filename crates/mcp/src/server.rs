//! The MCP handler: one for both eras of the protocol and both transports. It holds no state of a connection
//! but its subscriptions; jobs and cursors are on disk.
#![expect(deprecated, reason = "older clients log; only a build for the conformance suite knows of it")]

use std::collections::HashMap;
use std::sync::Arc;

use outlast_job::Failure;
use outlast_policy::{Judged, Order, Pass, Question};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
    CreateTaskResult, CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestMethod,
    GetTaskParams, GetTaskResult, Implementation, InputRequiredResult, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use crate::answer::failure_text;
use crate::answering::{self, Answered, Answering};
use crate::approve::{Approved, ask, ask_for_jobs};
use crate::arguments::Arguments;
use crate::call_handle::CallHandle;
use crate::calls::{self, Call, Incoming};
use crate::engine::parked::{Parked, Step};
use crate::engine::{Caller, Engine};
use crate::options::{Options, Profile};
use crate::sent::{OUT_AFTER, Unsent};
use crate::subscriptions::Subscriptions;
use crate::tasks::Ended;
use crate::tools::Parse;
use crate::{app, resources, session, tools, unreadable};

/// Clients that hand their model `structuredContent` instead of the words, by the names they give themselves.
const WORDS_ALONE: [&str; 2] = ["claude-code", "codex-mcp-client"];

/// What the first step of a call brought.
enum First {
    /// Nobody has to be asked: the call is done, or waits.
    Begun(Box<Step<Answered>>),
    /// A person decides about the call.
    Asked { question: Box<Question>, call: Box<Call> },
}

/// What came of a call.
enum Called {
    Done(Answered),
    /// The client must ask, and call again.
    Ask(Box<InputRequiredResult>),
}

/// The handler.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    engine: Arc<Engine>,
    options: Arc<Options>,
    tools: Arc<Vec<Tool>>,
    /// How the arguments of each tool become a call.
    parsers: Arc<HashMap<&'static str, Parse>>,
    /// Parameters of each tool that are taken and not told of.
    untold: Arc<HashMap<&'static str, &'static [&'static str]>>,
    /// The tool of the page in a chat, which only some clients are told of.
    app_tool: Arc<Tool>,
    subscriptions: Arc<Subscriptions>,
    /// Who is at the other end, where that is one agent for as long as the server runs.
    agent: Option<Arc<str>>,
    /// What answers say that are on their way, where it is known when they are out.
    unsent: Option<Arc<Unsent>>,
}

impl Server {
    pub(crate) fn new(options: Options) -> Result<Self, Failure> {
        let engine = Arc::new(Engine::open(&options)?);
        let mut tools = tools::of(options.profile);
        tools.extend(options.extras.iter().flat_map(|extras| extras.tools()));
        let definitions = tools::definitions(options.profile);
        let mut parsers: HashMap<&'static str, Parse> =
            definitions.iter().map(|tool| (tool.name, tool.parse)).collect();
        parsers.insert(app::TOOL, app::parse);
        let (parsers, app_tool) = (Arc::new(parsers), Arc::new(app::tool()));
        let untold = Arc::new(tools::untold(options.profile));
        let (options, tools) = (Arc::new(options), Arc::new(tools));
        let subscriptions = Arc::default();
        Ok(Self {
            engine,
            options,
            tools,
            parsers,
            untold,
            app_tool,
            subscriptions,
            agent: None,
            unsent: None,
        })
    }

    /// The same server, for one agent alone.
    pub(crate) fn for_agent(self, agent: Option<String>) -> Self {
        Self { agent: agent.map(Arc::from), ..self }
    }

    /// The same server, on a transport that says when an answer is out.
    pub(crate) fn on(self, unsent: Arc<Unsent>) -> Self {
        Self { unsent: Some(unsent), ..self }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Notes what an answer says for the first time, once it is out.
    fn settle_when_out(&self, call: &CallHandle, context: &RequestContext<RoleServer>) {
        let receipts = call.take_receipts();
        if receipts.is_empty() {
            return;
        }
        let is_wanted = !call.is_cancelled() && !context.ct.is_cancelled();
        let engine = Arc::clone(&self.engine);
        match &self.unsent {
            _ if !is_wanted => drop(tokio::task::spawn_blocking(move || engine.settle(receipts, false))),
            Some(unsent) => unsent.add(context.id.clone(), receipts),
            None => drop(tokio::spawn(async move {
                tokio::time::sleep(OUT_AFTER).await;
                let _ = tokio::task::spawn_blocking(move || engine.settle(receipts, true)).await;
            })),
        }
    }

    /// The session of a request.
    fn session(&self, context: &RequestContext<RoleServer>) -> String {
        session::of(self.options.session.as_deref(), self.agent.as_deref(), context)
    }

    /// The same server for another connection.
    pub(crate) fn for_connection(&self) -> Self {
        Self { subscriptions: Arc::default(), ..self.clone() }
    }

    pub(crate) fn home(&self) -> &outlast_job::registry::Home {
        self.engine.outlast.home()
    }

    /// Whether this client gets words alone. Some hand their model `structuredContent` *instead of* the
    /// words, which are what it should read: see docs/decisions/0005-words-alone-for-some-clients.md.
    fn words_alone(&self, context: &RequestContext<RoleServer>) -> bool {
        matches!(self.options.profile, Profile::Codex | Profile::Claude)
            || context.client_info().is_some_and(|info| WORDS_ALONE.contains(&info.name.as_str()))
    }

    fn error(&self, failure: &Failure) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(failure_text(failure, self.engine.words))])
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().chain([&*self.app_tool]).find(|tool| tool.name == name)
    }

    /// Runs what blocks where it holds nobody up: in this thread, if another can go on with the protocol.
    async fn blocking<T: Send + 'static>(
        &self,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&Engine, Caller) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (engine, of_caller) = (Arc::clone(&self.engine), caller.clone());
        let work = move || work(&engine, of_caller);
        let work = match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => tokio::spawn(async { tokio::task::block_in_place(work) }),
            // One thread serves many clients, and stays with them.
            _ => tokio::task::spawn_blocking(work),
        };
        let done = self.attend(caller, context, work, || {}).await;
        done.unwrap_or_else(|error| Err(Failure::system("the call broke off", error)))
    }

    /// Takes a call to its end. While it waits, it has no thread.
    async fn finish<T: Send + 'static>(
        &self,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
        mut step: Step<T>,
    ) -> Result<T, Failure> {
        loop {
            let Parked { wait, then } = match step {
                Step::Done(done) => return Ok(done),
                Step::Parked(parked) => *parked,
            };
            let (tell, told) = oneshot::channel();
            let done = move |ended| drop(tell.send(ended));
            let mut waiting = Some(self.engine.outlast.park(wait, done)?);
            if caller.call.is_cancelled() {
                waiting = None;
            }
            let ended = self.attend(caller, context, told, || waiting = None).await;
            let ended = ended.unwrap_or_else(|error| Err(Failure::system("the wait broke off", error)))?;
            step = self.blocking(caller, context, move |engine, _| then(engine, ended)).await?;
        }
    }

    /// Awaits a part of a call; meanwhile reports progress and listens for a cancellation.
    async fn attend<T>(
        &self,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
        mut work: impl Future<Output = T> + Unpin,
        mut cancel: impl FnMut(),
    ) -> T {
        let call = &caller.call;
        let token = context.meta.get_progress_token();
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = context.ct.cancelled(), if !call.is_cancelled() => {
                    call.cancel();
                    // Noted at once, so that the client's very next call can tell of it.
                    self.engine.note_cancelled(&caller.session, call);
                    cancel();
                }
                () = tokio::time::sleep(self.options.progress_every), if !call.is_cancelled() => {
                    if let Some(token) = token.as_ref().filter(|_| !call.is_answered()) {
                        self.report(token.clone(), call, context).await;
                    }
                }
            }
        }
    }

    /// Parses a call, asks the policy about it and carries it out. Where nobody has to be asked, that is one
    /// step: each change of threads costs the caller time.
    async fn judge_and_call(
        &self,
        caller: Caller,
        incoming: Incoming<'_>,
        answering: Answering,
        context: &RequestContext<RoleServer>,
    ) -> Result<Called, Failure> {
        if let Some(question) = ask_for_jobs(&self.engine, &caller.session, incoming.request, context).await {
            return Ok(Called::Ask(question));
        }
        let (parse, arguments) = (incoming.parse, incoming.arguments.clone());
        let answering = Arc::new(answering);
        let of_answer = Arc::clone(&answering);
        let carry_out = move |engine: &Engine, caller: Caller, call: Call, pass: Pass| {
            let step = calls::carry_out(engine, &caller, call, pass)?;
            step.and_then(engine, move |engine, reply| Ok(of_answer.answer(engine, &caller.call, reply)))
        };
        let first_of_all = carry_out.clone();
        let first = move |engine: &Engine, caller: Caller| {
            let mut call = parse(engine, &arguments)?;
            engine.place_in_shell(&caller, &mut call.order)?;
            let session = engine.acting_as(&caller, &call.order);
            match engine.gate.judge(&Order { session: &session, kind: call.order.kind() })? {
                Judged::Free(pass) => {
                    first_of_all(engine, caller, call, pass).map(|step| First::Begun(Box::new(step)))
                }
                Judged::Refused(failure) => Err(failure),
                Judged::Asked(question) => Ok(First::Asked { question, call: Box::new(call) }),
            }
        };
        let (question, call) = match self.blocking(&caller, context, first).await? {
            First::Begun(step) => {
                return self.finish(&caller, context, *step).await.map(Called::Done);
            }
            First::Asked { question, call } => (question, call),
        };
        let pass = match ask(&self.engine, question, incoming, context).await? {
            Approved::Ask(question) => return Ok(Called::Ask(question)),
            Approved::Yes(pass) => pass,
        };
        let work = move |engine: &Engine, caller: Caller| carry_out(engine, caller, *call, pass);
        let step = self.blocking(&caller, context, work).await?;
        self.finish(&caller, context, step).await.map(Called::Done)
    }

    /// Gets the keeper of the next job ready, should there be none: once this answer is out of the house,
    /// because to run a program takes a processor for longer than a short command does.
    fn get_ready_soon(&self) {
        if !self.engine.outlast.is_ready() {
            let engine = Arc::clone(&self.engine);
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                engine.outlast.get_ready();
            });
        }
    }

    async fn report(&self, token: ProgressToken, call: &CallHandle, context: &RequestContext<RoleServer>) {
        let elapsed = call.began().elapsed().as_secs_f64();
        let message = match call.about() {
            Some(handle) => {
                let end = self.engine.job(&handle.to_string()).map_or(0, |job| job.log_end());
                format!("job {handle}: {elapsed:.0} s, {end} bytes of output so far")
            }
            None => format!("{elapsed:.0} s"),
        };
        let progress = ProgressNotificationParam::new(token, elapsed).with_message(message);
        // A client that does not take it gets everything in the result too.
        let _ = context.peer.notify_progress(progress).await;
    }
}

/// Whether a client can be given a task. The era decides too: some declare tasks in the older one and can't
/// use them.
fn knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    let newer = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    newer && context.client_capabilities().is_some_and(|can| can.supports_tasks())
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tasks()
            .build();
        if self.options.extras.is_some() {
            let more = ServerCapabilities::builder().enable_prompts().enable_logging().build();
            (capabilities.prompts, capabilities.logging) = (more.prompts, more.logging);
        }
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("outlast", env!("CARGO_PKG_VERSION"))
                    .with_title("Outlast")
                    .with_description("A shell whose jobs outlast the call, the conversation and a crash"),
            )
            .with_instructions(self.engine.words.instructions())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.engine.outlast.get_ready();
        let mut tools = self.tools.to_vec();
        if self.words_alone(&context) {
            // A promise of facts that do not come would be an error to the client.
            tools.iter_mut().for_each(|tool| tool.output_schema = None);
        }
        if app::is_shown_by(context.client_capabilities().as_ref()) {
            app::announce(&mut tools);
        }
        Ok(ListToolsResult { tools, ..ListToolsResult::default() })
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tool(name).cloned()
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unreadable::error(&request)
            .unwrap_or_else(|| ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)))
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(extras) = &self.options.extras {
            extras.translate(&mut request);
        }
        let Some(tool) = self.tool(&request.name) else {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_ref()).collect();
            let message = format!("there is no tool {:?}; there are {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        if let Some(extras) = &self.options.extras
            && let Some(answer) = extras.call(&request, &context).await
        {
            return answer;
        }
        let arguments = Arguments::new(request.arguments.clone());
        let mut known = tools::parameters(tool);
        let untold = self.untold.get(request.name.as_ref()).copied().unwrap_or_default();
        known.extend(untold.iter().map(ToString::to_string));
        let unknown = arguments.unknown(&known);
        let session = self.session(&context);
        let call = Arc::new(CallHandle::new());
        let env = session::env(&context);
        let caller = Caller { session, env, tasks: knows_tasks(&context), call: Arc::clone(&call) };
        let Some(parse) = self.parsers.get(request.name.as_ref()).copied() else {
            let message = format!("nothing is known of the tool {:?}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let incoming = Incoming { parse, arguments: &arguments, request: &request };
        let mut answering = Answering::new(&context, self.unsent.clone());
        (answering.unknown, answering.words_alone) = (unknown, self.words_alone(&context));
        let noted = self.engine.call_log.begin(&request.name, &caller.session, &caller.env);
        let called = self.judge_and_call(caller, incoming, answering, &context).await;
        if let Some(noted) = noted {
            noted.end(called.is_ok());
        }
        self.settle_when_out(&call, &context);
        self.get_ready_soon();
        Ok(match called {
            Ok(Called::Done(Answered::Written)) => answering::written().into(),
            Ok(Called::Done(Answered::Result(result))) => (*result).into(),
            Ok(Called::Done(Answered::Pending(pending))) => match self.engine.tasks.create(*pending) {
                Ok(record) => CallToolResponse::Task(CreateTaskResult::new(record.task())),
                Err(failure) => self.error(&failure).into(),
            },
            Ok(Called::Ask(question)) => (*question).into(),
            Err(failure) => self.error(&failure).into(),
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let record = self.engine.tasks.get(&request.task_id)?;
        if record.ended.is_some() {
            return Ok(GetTaskResult::new(record.detailed(String::new())));
        }
        let session = record.pending.session.clone();
        let env = Vec::new();
        let call = Arc::new(CallHandle::new());
        let caller = Caller { session, env, tasks: false, call: Arc::clone(&call) };
        let (engine, pending) = (Arc::clone(&self.engine), record.pending.clone());
        let known = tokio::task::spawn_blocking(move || calls::resume(&engine, &caller, &pending)).await;
        // The result of a task is on the disk, and can be asked for again.
        let (engine, receipts) = (Arc::clone(&self.engine), call.take_receipts());
        let _ = tokio::task::spawn_blocking(move || engine.settle(receipts, true)).await;
        let result = match known.map_err(|error| ErrorData::internal_error(error.to_string(), None))? {
            Ok(Some(reply)) => answering::success(reply, self.words_alone(&context)),
            Ok(None) => {
                let handle = record.pending.handle;
                let end = self.engine.job(&handle.to_string()).map_or(0, |job| job.log_end());
                let word = format!("job {handle} goes on, {end} bytes of output so far");
                return Ok(GetTaskResult::new(record.detailed(word)));
            }
            Err(failure) => self.error(&failure),
        };
        let result = serde_json::to_value(&result).ok().and_then(|value| value.as_object().cloned());
        let ended = Ended::Completed { result: result.unwrap_or_default() };
        Ok(GetTaskResult::new(self.engine.tasks.end(&request.task_id, ended)?.detailed(String::new())))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Nothing is ever asked in a task: a job's questions are its own, and are answered with send_input.
        self.engine.tasks.get(&request.task_id).map(|_| ())
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let before = self.engine.tasks.get(&request.task_id)?;
        self.engine.tasks.end(&request.task_id, Ended::Cancelled)?;
        if before.ended.is_none() {
            self.engine.note_given_up(&before.pending.session, before.pending.handle);
        }
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        match &self.options.extras {
            Some(extras) => {
                Ok(ListPromptsResult { prompts: extras.prompts()?, ..ListPromptsResult::default() })
            }
            None => Err(ErrorData::method_not_found::<ListPromptsRequestMethod>()),
        }
    }

    async fn get_prompt(
        &self,
        request: rmcp::model::GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::GetPromptResponse, ErrorData> {
        match &self.options.extras {
            Some(extras) => extras.prompt(&request),
            None => Err(ErrorData::method_not_found::<GetPromptRequestMethod>()),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let session = self.session(&context);
        let engine = Arc::clone(&self.engine);
        let resources = tokio::task::spawn_blocking(move || resources::list(&engine, &session)).await;
        let mut resources = resources.unwrap_or_else(|_| Ok(Vec::new()))?;
        resources.extend(self.options.extras.iter().flat_map(|extras| extras.resources()));
        resources.extend(app::is_shown_by(context.client_capabilities().as_ref()).then(app::resource));
        Ok(ListResourcesResult { resources, ..ListResourcesResult::default() })
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut resource_templates = resources::templates();
        resource_templates.extend(self.options.extras.iter().flat_map(|extras| extras.templates()));
        Ok(ListResourceTemplatesResult { resource_templates, ..ListResourceTemplatesResult::default() })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if let Some(contents) = self.options.extras.as_ref().and_then(|extras| extras.read(&request.uri)) {
            return contents.map(ReadResourceResponse::from);
        }
        if request.uri == app::URI {
            return Ok(app::page().into());
        }
        let (engine, session) = (Arc::clone(&self.engine), self.session(&context));
        tokio::task::spawn_blocking(move || resources::read(&engine, &session, &request.uri))
            .await
            .unwrap_or_else(|error| Err(ErrorData::internal_error(error.to_string(), None)))
            .map(ReadResourceResponse::from)
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match self.options.extras {
            Some(_) => Ok(()),
            None => Err(ErrorData::method_not_found::<SetLevelRequestMethod>()),
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.options.extras.as_ref().is_some_and(|extras| extras.is_watched(&request.uri)) {
            return Ok(());
        }
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
        let mut accepted = SubscriptionFilter::builder().resource_subscriptions(uris).build();
        accepted.resources_list_changed = requested.resources_list_changed;
        Some(accepted)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        // A list that can't be followed is still there to be asked for.
        let _ = self.subscriptions.begin_list(&self.engine, context.peer);
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        crate::subscriptions::listen(&self.engine, context).await
    }
}
