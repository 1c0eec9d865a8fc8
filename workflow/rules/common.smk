# What the rules ask the plan for.
def clear(function, *arguments):
    """Call a function of the package; what a user can mend becomes Snakemake's one-line error."""
    try:
        return function(*arguments)
    except NeurouteError as error:
        raise WorkflowError(str(error))


def config_files():
    """As they are called in messages; `config.yaml` where another workflow's config holds ours."""
    return " with ".join(map(str, workflow.configfiles)) or "config.yaml"


def source_folder():
    """Where the package lies in a checkout; nothing where it is installed as others are."""
    folder = Path(neuroute.__file__).parents[1]
    return [str(folder)] if folder.name == "src" else []


def start_warm_process():
    """Jobs on this machine are then copies of one process; it ends with this one, whose end of a pipe it holds.

    Of jobs that go to a cluster those are left that are made where they are sent from, tables and figures; the others
    know nothing of that process, on whatever node they run.
    """
    if not PLAN.scale.warm_jobs or not hasattr(os, "pidfd_open"):
        return
    place = RUNNING.enter_context(scratch_folder())
    os.environ[SOCKET_ENV] = f"{place}/socket"
    log = RUNNING.enter_context(open(f"{place}/log", "w"))
    command = [sys.executable, "-m", "neuroute", "warm", os.environ[SOCKET_ENV]]
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, env=os.environ | one_thread
    )
    RUNNING.callback(process.stdin.close)
    while not os.path.exists(os.environ[SOCKET_ENV]) and process.poll() is None:
        time.sleep(0.05)


def hand_over_plan():
    """Trainings and evaluations stop where an edit meanwhile would make something else than what is planned here."""
    jobs = {"/".join(job.wildcards) for job in workflow.dag.needrun_jobs()}
    os.environ[PLANNED_ENV] = f"{PLAN.work}/planned.json"
    planned = {job: PLAN.digested(job) for job in jobs if job in PLAN.runs or job in PLAN.evaluations}
    write_json(Path(os.environ[PLANNED_ENV]), planned)


def fetch_what_was_missing():
    """Before it is decided what there is to do: what came of a network that was not there before is new input."""
    wanted = {b for e in PLAN.evaluations for b in PLAN.benchmarks_to_fetch(e)} if not PLAN.config.benchmarks_dir else ()
    manifests = {b: PLAN.benchmark_manifest(b) for b in sorted(wanted) if PLAN.benchmark_manifest(b).exists()}
    looks_only = ("-n", "--dry", "--lint", "--unlock", "--touch", "--summary", "--dag", "--rulegraph", "--list")
    if manifests and workflow.is_main_process and not any(word.startswith(looks_only) for word in sys.argv[1:]):
        from neuroute.datasets.fetch import fetch_again

        if came := clear(fetch_again, manifests):
            logger.info(f"{came} public instances were fetched that were missing before.")


def gpus_at_once():
    """GPUs that jobs on this machine may ask for together: `--resources gpu=N`."""
    return int(workflow.global_resources.get("gpu").value or 0)


def group_of(stage, name):
    """Which short jobs go to a cluster together; a profile says how many (group-components: short=16)."""
    group = REQUESTS.group(stage, name)
    if group:
        workflow.parent_groupids[group] = "short"
    if workflow.remote_exec:  # in a job that a cluster was sent: what came together stays so
        workflow.group_settings.group_components = {"short": sys.maxsize}
    return group


def runs_group():
    """Whether this process runs short jobs that a cluster was sent together; Snakemake tells it as an option."""
    return workflow.remote_exec and "--local-groupid" in sys.argv and "--executor" not in sys.argv


def check_cluster():
    """Stop before the first job when no node can take one that is needed now, or when some run twice."""
    waiting = [job for job in workflow.dag.needrun_jobs() if not job.is_local]
    if workflow.executor_plugin.name != "slurm":
        return
    if GPUS > (quota := gpus_at_once()) > 0:
        raise WorkflowError(f"gpus_per_run: {GPUS}, but all jobs together may hold {quota}: set resources: gpu: in {PROFILE}")
    asked = (
        JobRequest(
            f"{job.rule.name} {' '.join(job.wildcards)}",
            job.resources.get("slurm_partition"),
            job.resources.get("runtime") or 0,
            job.resources.get("mem_mb") or 0,
            job.threads,
            job.resources.get("gpu") or 0,
        )
        for job in waiting
    )
    clear(check_jobs, asked)
    clear(check_orphans, Path.cwd())
    if PLAN.config.device == "auto" and not has_gpu():
        logger.warning("This node shows no GPU, so no job asks for one: `device: cuda` in config.yaml makes them ask.")


def say_expected():
    """Tell the progress line what the jobs that are to run are expected to take, as far as anybody knows."""
    expected = defaultdict(dict)
    for job in workflow.dag.needrun_jobs():
        w = dict(job.wildcards.items())
        if "labels" in w:
            seconds = REQUESTS.cost("labels", w["labels"]).seconds
        elif "run" in w:
            seconds = REQUESTS.cost("train", w["run"]).seconds
        elif "group" in w:
            seconds = REQUESTS.cost("evaluate", f"{w['paper']}/{w['name']}/{w['group']}").seconds
        else:
            seconds = REQUESTS.render(artifact_at(job.wildcards).id).seconds if "artifact" in w else 0.0
        if not math.isnan(seconds):  # as of a solver that nobody has measured
            expected[job.rule.name][job.jobid] = seconds * job.threads
    settings, jobs_to_run = workflow.resource_settings, sum(map(len, expected.values()))
    at_once = min((settings.cores if workflow.local_exec else settings.nodes) or 1, max(1, jobs_to_run))
    hours = sum(sum(jobs.values()) for jobs in expected.values()) / 3600
    how = "Rehearsed" if REQUESTS.rehearsed.device else "Estimated"
    amount = f"{max(1, 60 * hours / at_once):.0f} min" if workflow.local_exec else f"{hours:.1f} core-hours"
    logger.info(f"{how}: about {amount}", extra={"expected": expected, "at_once": at_once, "shown": True})


def check_label_jobs():
    """Stop before the first job when a solver that is needed now is missing or needs more memory than there is.

    And when labels cannot be written where they are kept, which may be another disk than that of the work folder.
    """
    manifests = {str(PLAN.manifest(job)): job for job in PLAN.label_jobs}
    outputs = {str(file) for job in workflow.dag.needrun_jobs() for file in job.output}
    waiting = [job for manifest, job in manifests.items() if manifest in outputs]
    if waiting:
        check_folder(PLAN.label_store)
    for job in waiting:
        check_solvers(PLAN, job, here=workflow.local_exec)


def check_replaced():
    """Stop before the first job when models of other settings, or what was measured of them, would pass for these."""
    kept = ["/".join(job.wildcards) for job in workflow.dag.jobs if not workflow.dag.needrun(job)]
    replaced = [job for job in kept if not workflow.touch and is_replaced(PLAN, job)]
    if replaced:
        of = {run: PLAN.checkpoint(run) for run in PLAN.runs}
        made = [of.get(job) or PLAN.evaluation_file(job).with_suffix(".json") for job in replaced]
        raise WorkflowError(
            f"{', '.join(replaced)}: models of other settings, or measurements of such, lie in their folders, as of "
            f"`neuroute train --set`; have their own put back: snakemake --forcerun {' '.join(map(str, made))}"
        )


def check_weights():
    """Stop before the first job when weights that config.yaml gives are not those of their run's network."""
    outputs = {str(file) for job in workflow.dag.needrun_jobs() for file in job.output}
    waiting = [run for run in GIVEN if str(PLAN.checkpoint(run)) in outputs]
    if waiting:
        from neuroute.networks.import_weights import tensors_of  # loads torch, so only where it is needed

        for run in waiting:
            tensors_of(PLAN.runs[run], PLAN.network_code(run), PLAN.config.where)


def check_networks():
    """Stop before the first job when a network of the user's own is none for its run."""
    outputs = {str(file) for job in workflow.dag.needrun_jobs() for file in job.output}
    own = {kind for kind in PLAN.config.networks if not kind.startswith("neuroute.")}
    runs = [run for run in PLAN.runs.values() if run.network.kind in own and str(PLAN.checkpoint(run.id)) in outputs]
    if waiting := [run for run in runs if run.id not in GIVEN]:
        from neuroute.training.network_checks import check_run  # loads torch, so only where it is needed

        for run in waiting:
            check_run(run)


def one_of(ids):
    """A wildcard that matches these alone."""
    return "|".join(map(re.escape, ids)) or "(?!)"


def trainings():
    """Name, priority, files and runs of trainings that leave the same files.

    Those that make their own labels come first, as others start from them: runs that hang on each other are what takes
    longest in the end.
    """
    groups = defaultdict(list)
    for run in PLAN.runs.keys() - set(GIVEN):
        kind, files = PLAN.runs[run].training.kind, PLAN.training_files(run)
        name, priority = ("train", 0) if kind == "supervised" else ("train_itself", 1)
        if any(MOMENTS in file for file in files):
            name, priority = "train_reinforced", 2
        stages = [Path(file).stem for file in files if file.count("/") and MOMENTS not in file]
        groups["_".join([name, *stages]), priority, *files].append(run)
    return [(name, priority, files, sorted(runs)) for (name, priority, *files), runs in sorted(groups.items())]


def artifacts_of(kind):
    """A wildcard that matches all tables or all figures, as their files are called in the results folder."""
    stems = [PLAN.artifact_stem(a) for a, o in PLAN.artifacts.items() if o.kind == kind]
    return one_of(str(stem.relative_to(PLAN.config.results_dir)) for stem in stems)


def artifact_at(w):
    return PLAN.artifacts[PLAN.full_id(w.artifact)]


def drawn(artifacts):
    """All files of each artifact: one that is lost is made again."""
    return [f"{PLAN.artifact_stem(a.id)}.{suffix}" for a in artifacts for suffix in formats(a.kind)]


def artifact_inputs(w):
    a = artifact_at(w)
    return (
        [PLAN.evaluation_file(e).with_suffix(".json") for e in a.evaluations]  # which states what rows and arrays hold
        + [PLAN.run_dir(r) / file for r in a.runs for file in ("log.jsonl", "run.json")]
        + [PLAN.manifest(b) for b in a.label_jobs]
    )


def own_instances(w):
    """Instances of a benchmark in the user's copy: one that comes, goes or changes is new input."""
    folder = PLAN.config.benchmarks_dir
    names = published_instances(w.benchmark) if folder else ()
    files = (instance_file(Path(folder), name, w.benchmark) for name in names)
    return [file for file in files if file.is_file()]


def evaluation_inputs(w):
    """The weights that are measured, the labels, the public benchmarks, and a sweep that went before."""
    e = f"{w.paper}/{w.name}/{w.group}"
    return (
        PLAN.checkpoints_of_evaluation(e)
        + [PLAN.manifest(b) for b in PLAN.label_jobs_of_evaluation(e)]
        + [PLAN.benchmark_manifest(b) for b in PLAN.benchmarks_to_fetch(e)]
        + [file for file in [PLAN.rescaling_of_evaluation(e)] if file]
    )


def compare_inputs(w):
    """Libraries, the weights of runs that are named, and others' results."""
    settings = PLAN.config.compare
    runs = [run for run in settings.sources if run in PLAN.runs]
    return (
        [PLAN.benchmark_manifest(b) for b in settings.benchmarks]
        + [PLAN.checkpoint(run) for run in runs]
        + settings.results
    )


def training_inputs(w):
    return [PLAN.manifest(b) for b in PLAN.label_jobs_of_run(w.run)] + PLAN.files_to_start(w.run)


def products():
    """A parameter where a GPU keeps all digits of fp32 products, which gives other results than TF32."""
    return {"products": "fp32"} if GPUS and not PLAN.config.tf32 else {}


def launcher(w, resources):
    return f"-m torch.distributed.run --standalone --nproc-per-node {resources.gpu}" if resources.gpu > 1 else ""
