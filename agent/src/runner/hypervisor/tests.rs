//! Connections that are made, lost and made again, with time paused.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass_drivers_fake::{FakeDriver, FakeVm, Lost};
use windlass_protocol::{
    Bytes, MemorySeen, MilliCpu, Promises, Resources, RunState, Seen, ShrinkCpu,
};

#[tokio::test(start_paused = true)]
async fn a_connection_that_never_lasts_is_not_made_in_a_hot_loop() {
    let (flapping, made) = (Flapping::new(), Flapping::made);
    let mut hypervisor = Hypervisor::new(AnyAttach::new(Counting(flapping.clone())), 7);
    let minute = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            hypervisor.next().await;
        }
    });
    assert!(minute.await.is_err());
    assert!((20..60).contains(&made(&flapping)), "{} in a minute", made(&flapping));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_lasted_is_made_again_at_once() {
    let vm = vm();
    let mut hypervisor = Hypervisor::new(AnyAttach::new(vm.clone()), 7);
    assert!(matches!(hypervisor.next().await, Happening::Attached(_)));
    let quiet = tokio::time::timeout(LASTING, hypervisor.next()).await;
    assert!(quiet.is_err());
    vm.hang_up();
    let started = Instant::now();
    assert!(matches!(hypervisor.next().await, Happening::Attached(_)));
    assert!(started.elapsed() < ATTACHING.first);
}

#[tokio::test(start_paused = true)]
async fn each_request_has_one_answer_also_when_its_connection_is_lost() {
    let vm = vm();
    let mut hypervisor = Hypervisor::new(AnyAttach::new(vm.clone()), 7);
    assert!(matches!(hypervisor.next().await, Happening::Attached(_)));
    vm.lose_next_answer(Lost::Undone);
    hypervisor.start(Wanted::Look);
    assert!(no_answer(&hypervisor.next().await));
    assert!(matches!(hypervisor.next().await, Happening::Attached(_)));
    hypervisor.start(Wanted::Look);
    assert!(matches!(hypervisor.next().await, Happening::Answered(Event::Seen(_))));
}

#[tokio::test(start_paused = true)]
async fn without_a_connection_a_look_waits_for_it_and_a_resize_is_certainly_not_done() {
    let vm = vm();
    vm.set_taken(true);
    let mut hypervisor = Hypervisor::new(AnyAttach::new(vm.clone()), 7);
    let resize = Resize::Cpu(MilliCpu::from_cores(2));
    hypervisor.start(Wanted::Resize(resize));
    let refused = Event::Failed(Peer::Hypervisor, Failure::Refused(UNCONNECTED));
    assert!(matches!(hypervisor.next().await, Happening::Answered(event) if event == refused));
    hypervisor.start(Wanted::Look);
    assert!(matches!(hypervisor.next().await, Happening::Unreachable(_)));
    assert!(no_answer(&hypervisor.next().await));
    hypervisor.start(Wanted::Look);
    vm.set_taken(false);
    assert!(matches!(hypervisor.next().await, Happening::Attached(_)));
    assert!(matches!(hypervisor.next().await, Happening::Answered(Event::Seen(_))));
    assert_eq!(vm.asked(), []);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_waits_for_is_not_reported() {
    let vm = vm();
    let mut hypervisor = Hypervisor::new(AnyAttach::new(vm.clone()), 7);
    assert!(matches!(hypervisor.next().await, Happening::Attached(_)));
    hypervisor.start(Wanted::Resize(Resize::Cpu(MilliCpu::from_cores(2))));
    hypervisor.disregard();
    hypervisor.start(Wanted::Look);
    let mut heard = Vec::new();
    while let Ok(happening) = tokio::time::timeout(LASTING, hypervisor.next()).await {
        heard.push(happening);
    }
    let answers: Vec<_> = heard.iter().filter(|h| matches!(h, Happening::Answered(_))).collect();
    assert!(matches!(answers[..], [Happening::Answered(Event::Seen(_))]), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reset_is_heard_while_an_answer_is_held_back() {
    let vm = vm();
    let mut hypervisor = Hypervisor::new(AnyAttach::new(vm.clone()), 7);
    assert!(matches!(hypervisor.next().await, Happening::Attached(_)));
    vm.hold();
    hypervisor.start(Wanted::Look);
    assert!(tokio::time::timeout(LASTING, hypervisor.next()).await.is_err());
    vm.reset();
    assert!(matches!(hypervisor.next().await, Happening::Noticed(Notice::Reset)));
    vm.let_go();
    assert!(matches!(hypervisor.next().await, Happening::Answered(Event::Seen(_))));
}

#[tokio::test(start_paused = true)]
async fn three_questions_in_a_row_without_an_answer_end_a_connection() {
    // Which of the questions are answered, and how often a connection is made for them.
    for (answers, made) in [
        ([false, false, true, false, false, true], 1),
        ([false, false, false, true, true, true], 2),
    ] {
        let hearing = Arc::new(HardOfHearing { vm: vm(), answers, asked: AtomicUsize::new(0) });
        let mut hypervisor = Hypervisor::new(AnyAttach::new(Shared(hearing)), 7);
        assert!(matches!(hypervisor.next().await, Happening::Attached(_)));
        let mut attached = 1;
        for answered in answers {
            hypervisor.start(Wanted::Look);
            let mut happening = hypervisor.next().await;
            if matches!(happening, Happening::Attached(_)) {
                attached += 1;
                happening = hypervisor.next().await;
            }
            assert_eq!(no_answer(&happening), !answered, "{answers:?}: {happening:?}");
        }
        assert_eq!(attached, made, "{answers:?}");
    }
}

fn no_answer(happening: &Happening) -> bool {
    let failed = Event::Failed(Peer::Hypervisor, Failure::NoAnswer);
    matches!(happening, Happening::Answered(event) if *event == failed)
}

/// Accepts every connection, and ends it at once.
struct Flapping {
    vm: FakeVm,
    made: AtomicUsize,
}

impl Flapping {
    fn new() -> Arc<Self> {
        Arc::new(Self { vm: vm(), made: AtomicUsize::new(0) })
    }

    fn made(this: &Arc<Self>) -> usize {
        this.made.load(Ordering::Relaxed)
    }
}

/// The way to it.
struct Counting(Arc<Flapping>);

impl Attach for Counting {
    type Driver = FakeDriver;

    fn place(&self) -> String {
        self.0.vm.place()
    }

    async fn attach(&self) -> Result<(FakeDriver, mpsc::Receiver<Notice>), DriverError> {
        self.0.made.fetch_add(1, Ordering::Relaxed);
        let attached = self.0.vm.attach().await;
        self.0.vm.hang_up();
        attached
    }
}

/// Answers some of the questions that it is asked over all its connections.
struct HardOfHearing<const N: usize> {
    vm: FakeVm,
    answers: [bool; N],
    asked: AtomicUsize,
}

impl<const N: usize> Attach for Shared<N> {
    type Driver = Connected<N>;

    fn place(&self) -> String {
        self.0.vm.place()
    }

    async fn attach(&self) -> Result<(Connected<N>, mpsc::Receiver<Notice>), DriverError> {
        let (driver, notices) = self.0.vm.attach().await?;
        Ok((Connected { driver, to: self.0.clone() }, notices))
    }
}

/// The way to it.
struct Shared<const N: usize>(Arc<HardOfHearing<N>>);

struct Connected<const N: usize> {
    driver: FakeDriver,
    to: Arc<HardOfHearing<N>>,
}

impl<const N: usize> Driver for Connected<N> {
    fn capabilities(&self) -> Capabilities {
        self.driver.capabilities()
    }

    async fn see(&mut self) -> Result<Seen, DriverError> {
        let asked = self.to.asked.fetch_add(1, Ordering::Relaxed);
        if self.to.answers.get(asked) == Some(&true) {
            return self.driver.see().await;
        }
        Err(DriverError::NoAnswer { command: "look", limit: Duration::ZERO })
    }

    async fn resize(&mut self, resize: Resize) -> Result<(), DriverError> {
        self.driver.resize(resize).await
    }
}

fn vm() -> FakeVm {
    let size = |cores, mib| Resources::new(MilliCpu::from_cores(cores), Bytes::from_mib(mib));
    let capabilities = Capabilities {
        cpu_step: MilliCpu::from_cores(1),
        limit_step: None,
        memory_step: Bytes::from_mib(2),
        shrink_cpu: ShrinkCpu::Parking,
        shrink_memory: true,
        promises: Promises::IN_ORDER,
        min: size(1, 256),
        max: size(4, 1024),
    };
    let memory = MemorySeen { boot: Bytes::from_mib(256), ..MemorySeen::default() };
    FakeVm::new(
        capabilities,
        Seen {
            plugged: MilliCpu::from_cores(1),
            limit: None,
            found_limit: None,
            memory,
            state: RunState::Running,
        },
    )
}
