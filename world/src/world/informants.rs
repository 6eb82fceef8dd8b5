//! Informants: what agents ask of them, what they do in their guests, whom they call.

use super::{MOST_PLANS, World};
use crate::agent::Agent;
use crate::coverage::informant_state;
use crate::informant::{Lie, To, reply};
use crate::laws::{self, Law};
use crate::message::{Body, Reply};
use crate::queue::Happening;
use crate::vms::Id;
use std::time::Duration;
use windlass_informant_core as informant;
use windlass_informant_core::wire::{self, Answer, Request, Unanswered};
use windlass_protocol::informant::{DownscaleResult, Endpoint};
use windlass_protocol::timing::{CALL_LIMIT, FOLLOWS_WITHIN};
use windlass_protocol::{AgentId, Bytes, Peer, Resources};

/// Coarser than in a guest, to save time; enough of them fit the informant's window.
const SAMPLE_EVERY: Duration = Duration::from_millis(330);
/// What the guest's kernel takes to do something.
const KERNEL: Duration = Duration::from_millis(1);
/// An informant that ended is started again after this.
const STARTS_AGAIN: Duration = Duration::from_secs(1);

// === impl World ===

impl World {
    /// The guest's metrics are read.
    pub(super) fn measure(&mut self, who: Id) -> Option<Reply> {
        let now = self.now;
        let vm = self.vms.get_mut(who)?;
        let averages = vm.informant.as_ref()?.load.averages(vm.informant_process.clock(now));
        let text = vm.guest.figures(now, averages)?.page().text();
        Some(Reply::Http(200, Body(text.into_bytes())))
    }

    /// A request of the agent arrives at the informant.
    pub(super) fn ask_informant(
        &mut self,
        who: Id,
        epoch: u64,
        call: u64,
        endpoint: Endpoint,
        body: &[u8],
    ) {
        let (now, to) = (self.now, To { epoch, call });
        let booked = self.booked(who);
        let Some(vm) = self.vms.get_mut(who) else { return };
        let Some(run) = &mut vm.informant else { return };
        let clock = vm.informant_process.clock(now);
        let request = wire::endpoint(endpoint.method, endpoint.path)
            .and_then(|endpoint| Ok(Request::decode(endpoint, body)?));
        let request = match request {
            Ok(request) => request,
            Err(unanswered) => return self.reply(who, to, reply(Err(&unanswered))),
        };
        let is_new = run.is_new(&request);
        // Without a number, one that its agent waits for no more cannot be told from a new one.
        let waits =
            |agent: &Agent| agent.epoch == epoch && agent.waits_for(Peer::Informant) == Some(call);
        let bare = match &request {
            Request::Downscale(message) | Request::Upscale(message) => message.is_bare(),
            Request::Register(_) | Request::HealthCheck(_) | Request::Unregister(_) => false,
        };
        let strays = bare && !vm.front.agent.as_ref().is_some_and(waits);
        if strays {
            vm.strayed_at = now;
        }
        if matches!(request, Request::Downscale(_)) {
            // Memory is read when less of it is asked for.
            run.core.observe(clock, informant::Event::Sampled(vm.guest.memory()));
        }
        let state = informant_state(&run.core);
        let of_old = run.is_of_old(&request);
        let known = strays.then(|| run.consents.clone());
        let asker = vm.front.agent.as_ref().and_then(|agent| agent.session);
        let mut answer = run.hear(now, clock, to, asker, &request);
        // An informant that lies may send the agent another answer.
        if let (Request::HealthCheck(_), Some(agent)) = (&request, &mut vm.front.agent)
            && agent.epoch == epoch
        {
            agent.lease.checked(call, answer.is_ok() || vm.lie != Some(Lie::Garbage));
        }
        if let Some(known) = known {
            // Its agent goes by what it was answered last.
            run.consents = known;
        }
        let mut lies = false;
        if let Ok(Some(answer)) = &mut answer
            && vm.lie == Some(Lie::AgreesToAll)
            && is_new
        {
            lies = run.agree_to(now, asker, &request, answer);
            vm.unruly |= lies;
            vm.lied |= lies;
            if let (true, Request::Downscale(message)) = (lies, &request) {
                // It said so: what it uses beyond that is its own doing.
                vm.allow_no_more(message.resources.cpu);
            }
        }
        self.met.informant_is_asked(state, asked(&request, is_new, &answer));
        let heeded = is_new && answer.is_ok();
        let old = (heeded && of_old).then(|| format!("heeds {request:?} of an older session"));
        let broken = match &answer {
            Ok(Some(answer)) if is_new && !lies => {
                self.heed(who, &request, answer, booked).filter(|_| !strays)
            }
            Ok(_) | Err(_) => None,
        };
        self.broken(Law::NewestSessionCounts, Some(who), old);
        if let Some((law, what)) = broken {
            self.broken(law, Some(who), Some(what));
        }
        if self.ends_now(who, |vm| &mut vm.informant_process) {
            return self.crash_informant(who);
        }
        match answer {
            Ok(None) => {}
            Ok(Some(answer)) => self.follow(who, to, &answer, lies),
            Err(unanswered) => self.reply(who, to, reply(Err(&unanswered))),
        }
        self.pump_informant(who);
    }

    /// Answers, once the guest has followed; for what needs no following, at once.
    fn follow(&mut self, who: Id, to: To, answer: &Answer, lies: bool) {
        let by = self.now.after(FOLLOWS_WITHIN);
        let Some(vm) = self.vms.get_mut(who) else { return };
        let Some(run) = &mut vm.informant else { return };
        if lies {
            // Whatever happens to what it uses then is its own doing.
            vm.used_then = Bytes::ZERO;
        }
        let reply = reply(Ok(answer));
        if matches!(answer, Answer::Downscaled(_) | Answer::Upscaled) && !lies {
            let epoch = run.epoch;
            run.answer_later(by, to, reply);
            self.queue.arrange(by, who, Happening::InformantWaited { epoch });
        } else {
            self.reply(who, to, reply);
        }
    }

    /// An answer leaves, if the informant does not make something else of it.
    fn reply(&mut self, who: Id, to: To, reply: Reply) {
        let garbles = self.vms.get(who).is_some_and(|vm| vm.lie == Some(Lie::Garbage));
        let reply = if garbles { self.garbled(reply) } else { reply };
        let To { epoch, call } = to;
        let answers = Happening::Answers { epoch, call, peer: Peer::Informant, reply };
        self.respond(who, answers);
    }

    /// Something that is no answer.
    fn garbled(&mut self, reply: Reply) -> Reply {
        let Reply::Http(status, Body(mut body)) = reply else { return reply };
        let (status, body) = match self.chance.below(7) {
            0 => (200, b"null".to_vec()),
            1 => (200, b"{\"Ok\":\"yes\",\"sequenceNumber\":-1}".to_vec()),
            2 => (302, body),
            3 => (500, b"internal error".to_vec()),
            4 => (404, Vec::new()),
            5 => {
                body.truncate(body.len() / 2);
                (status, body)
            }
            _ => (status, body),
        };
        Reply::Http(status, Body(body))
    }

    /// The guest follows what it agreed to. Returns how a law was broken, if it was.
    fn heed(
        &mut self,
        who: Id,
        request: &Request,
        answer: &Answer,
        booked: Resources,
    ) -> Option<(Law, String)> {
        let vm = self.vms.get_mut(who)?;
        let seen = vm.guest.seen();
        match (request, answer) {
            (Request::Upscale(message), _) => {
                let size = message.resources;
                vm.lied = false;
                let before = vm.allowed;
                vm.allowed = before.map(|allowed| allowed.max(size.cpu));
                let grew = before.is_some_and(|before| size.cpu > before);
                let over = vm.guest.limited(size.cpu.min(seen.plugged)) > booked.cpu && grew;
                laws::told(seen.memory.present(), size.mem)
                    .map(|what| (Law::TheWorldNotTheWish, what))
                    .or_else(|| {
                        let what = format!("told to use {}, booked {booked}", size.cpu);
                        let tame = vm.loose_since.is_none();
                        (over && tame).then_some((Law::PermitBeforeGrowth, what))
                    })
            }
            (Request::Downscale(message), Answer::Downscaled(DownscaleResult { ok: true, .. })) => {
                let size = message.resources;
                // It takes away, and never allows more than before.
                vm.allow_no_more(size.cpu);
                vm.lied = false;
                if size.mem < seen.memory.present() {
                    vm.used_then = vm.guest.in_use();
                }
                if vm.guest.rises {
                    vm.guest.fill_up();
                }
                None
            }
            _ => None,
        }
    }

    /// Carries out what the informant plans.
    pub(super) fn pump_informant(&mut self, who: Id) {
        let now = self.now;
        for _ in 0..MOST_PLANS {
            let Some(vm) = self.vms.get_mut(who) else { return };
            let Some(run) = &mut vm.informant else { return };
            let before = run.newest;
            let registered = run.registered();
            let followed = run.followed(now, vm.informant_process.clock(now));
            if run.newest != before {
                // What could not be brought online by now waits for the new agent's word.
                vm.allow_no_more(vm.guest.online());
                vm.lied = false;
            }
            for (to, reply) in registered.into_iter().chain(followed) {
                self.reply(who, to, reply);
            }
            let Some(vm) = self.vms.get_mut(who) else { return };
            let Some(run) = &mut vm.informant else { return };
            let plan = run.core.plan(vm.informant_process.clock(now));
            let epoch = run.epoch;
            if plan.actions.is_empty() {
                let clock = vm.informant_process.clock(now);
                let late = run.core.plan(laws::just_before(plan.wake_at, clock)).actions;
                let late = laws::late(&late);
                if let Some(at) = plan.wake_at {
                    let at = vm.informant_process.when(at);
                    let wakes = Happening::InformantWakes { epoch };
                    self.queue.wake(&mut run.alarm, at, who, wakes);
                }
                return self.broken(Law::PlansArePure, Some(who), late);
            }
            for action in plan.actions {
                self.tell_informant(who, informant::Event::Sent(action.clone()));
                self.begin(who, epoch, action);
                if self.ends_now(who, |vm| &mut vm.informant_process) {
                    return self.crash_informant(who);
                }
            }
        }
        let what = Some("an informant that plans without end".to_owned());
        self.broken(Law::NoBusyLoop, Some(who), what);
    }

    /// Something that the informant wants done is begun.
    fn begin(&mut self, who: Id, epoch: u64, action: informant::Action) {
        let now = self.now;
        let informant::Action::Call { agent: id, ask, at } = action else {
            self.queue.arrange(now.after(KERNEL), who, Happening::KernelDoes { epoch, action });
            return;
        };
        if let (informant::Ask::Resume, Some(vm)) = (ask, self.vms.get_mut(who)) {
            // Whoever counts from here on counts with what is online.
            vm.allow_no_more(vm.guest.online());
        }
        let Some(run) = self.informant(who, epoch) else { return };
        let call = run.next_call();
        let hangs_up = Happening::CallHangsUp { epoch, call, id };
        let place = self.queue.arrange(now.after(CALL_LIMIT), who, hangs_up);
        if let Some(run) = self.informant(who, epoch) {
            run.begin(id, call, place);
        }
        let (asked, body) = wire::to_agent(id, ask);
        self.ask(who, Happening::Calls { epoch, call, id, at, asked, body: Body(body) });
    }

    pub(super) fn tell_informant(&mut self, who: Id, event: informant::Event) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(who) else { return };
        let Some(run) = &mut vm.informant else { return };
        self.met.informant_hears(&run.core, &event);
        run.core.observe(vm.informant_process.clock(now), event);
    }

    pub(super) fn informant_samples(&mut self, who: Id, epoch: u64) {
        if self.informant(who, epoch).is_none() {
            return;
        }
        let Some(vm) = self.vms.get_mut(who) else { return };
        let (memory, stalls, lie) = (vm.guest.memory(), vm.guest.stalls(), vm.lie);
        let clock = vm.informant_process.clock(self.now);
        if let Some(run) = &mut vm.informant {
            run.load.sampled(clock, vm.guest.tasks());
        }
        self.tell_informant(who, informant::Event::Sampled(memory));
        if stalls {
            self.tell_informant(who, informant::Event::Stalled);
        }
        if lie == Some(Lie::Shouts) {
            self.shout(who, epoch);
        }
        let again = self.now.after(SAMPLE_EVERY);
        self.queue.arrange(again, who, Happening::InformantSamples { epoch });
        self.pump_informant(who);
    }

    /// Asks for memory out of turn; whatever is answered is not listened to.
    fn shout(&mut self, who: Id, epoch: u64) {
        let Some(id) = self.informant(who, epoch).and_then(|run| run.core.current()) else {
            return;
        };
        let (asked, body) = wire::to_agent(id, informant::Ask::MoreMemory);
        let Some(at) = self.vms.get(who).map(|vm| vm.front.address) else { return };
        self.ask(who, Happening::Calls { epoch, call: 0, id, at, asked, body: Body(body) });
    }

    /// The guest's kernel does as it is told, or shows what there is.
    pub(super) fn kernel_does(&mut self, who: Id, epoch: u64, action: informant::Action) {
        let booked = self.booked(who);
        let Some(vm) = self.vms.get_mut(who) else { return };
        if epoch <= vm.ended_with_boot {
            return;
        }
        let before = vm.guest.online();
        let event = match action {
            informant::Action::Look => informant::Event::Seen(Some(vm.guest.machine())),
            informant::Action::Do(change) => {
                match &change {
                    informant::Change::Remember(parked) => vm.stored.clone_from(parked),
                    informant::Change::Note(lease) => vm.noted = *lease,
                    informant::Change::AddedIsMovable
                    | informant::Change::OnlineMemory(_)
                    | informant::Change::OnlineCpu(_)
                    | informant::Change::OfflineCpu(_) => {}
                }
                informant::Event::Done(vm.guest.change(&change))
            }
            informant::Action::Call { .. } => return,
        };
        let online = vm.guest.online();
        let tame = !vm.unruly && vm.loose_since.is_none();
        let grew = online > before && self.setup.trust_guest_parking && tame;
        let beyond = (grew && vm.guest.usable() > booked.cpu)
            .then(|| format!("uses {online}, booked {booked}"));
        self.broken(Law::PermitBeforeGrowth, Some(who), beyond);
        let at = self.now.after(KERNEL);
        self.queue.arrange(at, who, Happening::InformantHears { epoch, event });
    }

    pub(super) fn informant_hears(&mut self, who: Id, epoch: u64, event: informant::Event) {
        if self.informant(who, epoch).is_some() {
            self.tell_informant(who, event);
            self.pump_informant(who);
        }
    }

    /// A call is over: answered, failed or hung up.
    pub(super) fn call_ends(
        &mut self,
        who: Id,
        epoch: u64,
        call: u64,
        id: AgentId,
        event: informant::Event,
    ) {
        let hangs_up = self.informant(who, epoch).and_then(|run| run.finish(id, call));
        if let Some(hangs_up) = hangs_up {
            self.queue.cancel(hangs_up);
            self.informant_hears(who, epoch, event);
        }
    }

    /// The informant ends between two effects, and is started again.
    pub(super) fn crash_informant(&mut self, who: Id) {
        self.kill_informant(who);
        let Some(vm) = self.vms.get(who) else { return };
        let starts = Happening::InformantStarts { boot: vm.guest.boot };
        self.tell(|| "the informant ends".to_owned());
        self.queue.arrange(self.now.after(STARTS_AGAIN), who, starts);
    }
}

/// What an informant was asked, in the words of the coverage table.
fn asked(
    request: &Request,
    is_new: bool,
    answer: &Result<Option<Answer>, Unanswered>,
) -> &'static str {
    match (request, answer) {
        (_, Err(_)) => "refuses",
        (Request::Register(_), _) => "register",
        (Request::Unregister(_), _) => "unregister",
        (Request::HealthCheck(_), _) => "health check",
        (Request::Downscale(_) | Request::Upscale(_), _) if !is_new => "again or stale",
        (_, Ok(Some(Answer::Downscaled(result)))) if result.ok => "agrees",
        (Request::Downscale(_), _) => "declines",
        (Request::Upscale(_), _) => "upscale",
    }
}
