"""What each variant of the lab runs: read on the host, which knows from it how many results to expect, and in the guest."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Program:
    """A GoogleTest program, run in a place (a function of places.py and its arguments)."""
    name: str
    place: tuple = ("root",)
    filter: str = "*"

    @property
    def label(self):
        return ".".join([self.name, *self.place])


@dataclasses.dataclass(frozen=True)
class Variant:
    cgroup_mode: str       # unified, hybrid or legacy, as the guest must find itself
    boot: str = ""         # words of the kernel's command line
    kernel: str = "bookworm"  # the Debian suite it is from
    flavour: str = "cloud-amd64"  # and the package, linux-image-...
    policy: str = ""       # "selinux": that of Debian 13 is in force, and every file of its disk labelled
    mini: bool = False     # without systemd: only programs, run as root
    programs: tuple = ()
    checks: tuple = ()     # classes of unittest cases, as "module.Class"
    files: tuple = ()      # of the built tests' directory, what the checks need of it
    counted: bool = False  # an instruction takes a nanosecond of its time (QEMU's -icount), whatever the host is busy with
    asked: bool = False    # run only where it is named


_WITHOUT_ROOT = "-*.UserWithoutDirectoriesIsToldWhatToDo:*.RootNeedsNoPreparation"
_EVERYWHERE = (
    Program("unit_launcher_cgroup"),
    Program("integration_launcher_cgroup"),
)

_PROBE = Program("integration_probe_program")

# What takes long and is the same on every file system; CodesTest and ReasonsTest read the manual, which the guest has not.
_BOUNDS = ("*.TheDepthBoundIsExact:*.WideAndDeepTreesAreWalkedWholeByFewDescriptors:*.TreesDeeperThanAnyPathAreWalked*:"
           "*.TheEntryBoundIsExact:*.MoreLinkedFilesThanAreKeptAreNamedByASecondWalk")


def _unless_held(kind, mark="-"):
    """A test that holds a write still waits for itself where nobody may read a file meanwhile (XFS, btrfs): ext4 shows it."""
    return "" if kind == "ext4" else mark + "StoredSnapshotTest.ACopyInTheMiddle*"


# The same on every file system, and what is done with setcap, which the guest has not: PlacesTest does that without.
_OF_THE_PROGRAM = "MountsTerminalTest.*:*.TheMemoryIsBounded*:*Hangs*:*.AFileSystemServedByAProcess*:*.CapabilitiesListsAnd*"


def _lacking(kind):
    """Tests of attributes that the file system does not take: users' own on tmpfs, an overlay's on an overlay."""
    return {"tmpfs": ":*OwnerForFuse:*.AllAttributesOfFiles*", "maze": ":*OwnerForFuse:*.AllAttributesOfFiles*",
            "overlay": ":*/PlacesTest.*OverlayAttribute"}.get(kind, "")


# Without the one that needs copies to take long: where files share blocks they are over before anybody can interfere.
_ON_EACH_FILE_SYSTEM = tuple(program for kind in ("ext4", "xfs", "btrfs", "tmpfs", "overlay", "maze") for program in (
    Program("unit_launcher_mounts", ("tmp_on", kind), "-*.FileThatKeepsChangingIsLeftOut" + _unless_held(kind, ":")),
    Program("unit_probe_mounts", ("tmp_on", kind), "-CodesTest.*:ReasonsTest.*:" + _BOUNDS + _lacking(kind)),
    Program("race_resolver", ("few_rounds_on", kind), "*/JudgeRaceTest.*:*/SnapshotRaceTest.*"),
    Program("integration_probe_mounts", ("tmp_on", kind), "-" + _OF_THE_PROGRAM + _lacking(kind))))

# Of these, for the boot that is part of every run, what most depends on a file system: how it counts links, whether what is
# mounted can be told apart, whether a lease tells of writers.
_BRIEFLY_ON_EACH_FILE_SYSTEM = tuple(program for kind in ("ext4", "xfs", "btrfs", "tmpfs", "overlay", "maze") for program in (
    Program("unit_launcher_mounts", ("tmp_on", kind), ":".join([
        "SnapshotTest.HardLinks*", "SnapshotLinksTest.SymbolicLinks*", "SnapshotLinksTest.FilesWithAll*",
        "SnapshotLinksTest.AMountOver*", "PathCasesTest.ASubvolume*", "BoundedSnapshotTest.AWriteThatIsHeld*",
        "StoredSnapshotTest.ACopyInTheMiddle*"]) + _unless_held(kind)),
    Program("unit_probe_mounts", ("tmp_on", kind), "AuditTest.HardLinksThat*:AuditTest.EverySymbolicLink*")))

# What needs no more of a host than busybox; elsewhere only what needs more is run.
_ALSO_WITH_BUSYBOX = ":".join([
    "GatewayModeTest.*", "*.TheProgramRunsUnprivilegedWithoutGroups", "*.RootBecomesNobody", "*.StatusesAreAsDocumented",
    "*.AProgramThatIgnoresEverythingIsEndedByTheTimeout", "*.ABindIsReadOnlyUnlessAskedOtherwise",
    "*.NothingOfTheEnvironmentButTermComesIn", "*.ClosedStandardStreamsBecomeDevNull", "*.SignalsReachTheProgram",
    "*.AKilledLauncherLeavesNoProcessAndItsCgroupGoesWithTheNextRun"])

# A guest has no sources and no npm, its kernel gives a namespace back some time after its last process, and where it is
# emulated two hundred cells at once do not all answer in time.
_ON_HOSTS_ONLY = "ManyCellsTest.*:OwnFilterTest.TheDefaultProfileGivenAsOnesOwnIsNoWeaker:" \
                 "RealToolsTest.NpmPacksAndInstallsAProgram:NativeLaunchTest.UserNamespacesThatAreUsedUpAreNamedBeforeLimits"

# What no cgroup mode has a part in, minutes in emulation: on hosts, and in one boot that is not part of every run.
_WHATEVER_THE_CGROUPS = "HungSourceTest.*:RealToolsTest.*:StreamsTest.*:SpoiledTerminalTest.*:LaunchTerminalTest.*:" \
                        "BackgroundJobTest.*:InputsTest.ALauncherThatIsKilled*:InputsTest.WithoutOneOf*"

# Whole launches whose places are attacked, what happened to other runtimes, what leaks, a covered /proc, and whether an attack
# of taskcell-probe answers the same alone and beside others: that by the user itself, in directories that were handed over.
_ATTACKED_LAUNCHES = (
    Program("attack_native", filter="-NativeAttackTest.AGroupOfTheCaller*"),  # as a user to whom nothing was handed over here
    Program("attack_company", ("handed", "taskcell-test")),
)

_MINI = Variant(
    "unified",
    mini=True,
    programs=(
        Program("lab_cgroup_truth"),
        Program("integration_launcher_cgroup"),
        Program("integration_probe_delegate", filter="DelegationTest.TheUser*"),
        Program("integration_launcher_native", filter=_ALSO_WITH_BUSYBOX + "-GatewayModeTest.SigtermEndsItWhile*"),  # no FUSE
    ))

VARIANTS = {
    "mini": _MINI,
    "mini-backports": dataclasses.replace(_MINI, kernel="bookworm-backports"),
    "unified": Variant(
        "unified",
        programs=_EVERYWHERE + _BRIEFLY_ON_EACH_FILE_SYSTEM + (
            Program("integration_launcher_cgroup", ("scope", "alice"), _WITHOUT_ROOT),
            Program("integration_launcher_cgroup", ("unit", "alice", "Delegate=yes"), _WITHOUT_ROOT),
            Program("integration_launcher_native",
                    filter=":".join(["-" + _ALSO_WITH_BUSYBOX, _ON_HOSTS_ONLY, _WHATEVER_THE_CGROUPS])),
            Program("degraded_native", filter="*CloneIntoCgroup*:*/LackTest.*Clone3*:*Openat2*"),
            Program("attack_weak_cell", ("handed", "taskcell-test"), "LiftedLimitsTest.*"),
            Program("attack_weak_cell", ("handed_bare", "taskcell-test"), "LiftedLimitsTest.*"),
            Program("attack_native", filter="StreamFileAttackTest.*:HostileWordsTest.*"),
        ),
        checks=("test_attack.QuickTopics", "test_cells.Cells", "test_cells.UnifiedCells", "test_weight.IoWeight",
                "test_tasks.EngineTasks", "test_demo.Demo", "test_demo.UserDemo")),
    "attacks": Variant("unified", programs=_ON_EACH_FILE_SYSTEM + _ATTACKED_LAUNCHES, checks=("test_attack.WholeSuite",)),
    "package": Variant("unified", checks=("test_package.InstalledPackage", "test_package.OperatedPackage", "test_readme.InstalledByReadme")),
    "probe": Variant(
        "unified",
        programs=(_PROBE, Program("integration_launcher_native", filter=_WHATEVER_THE_CGROUPS + "-" + _ON_HOSTS_ONLY)),
        checks=("test_attack.EngineAttacks", "test_probe.UnifiedProbe", "test_probe.UnifiedLive", "test_probe.UnifiedFixes",
                "test_probe.UnifiedDelegate", "test_weight.BusyDisk", "test_engines.ProbedEngines", "test_clean.Clean",
                "test_clean.ContainerClean")),
    "tasks": Variant("unified", checks=("test_tasks.Tasks", "test_tasks.OperatorCommands", "test_operator.OperatedHome",
                                        "test_tasks.TaskRefusals", "test_tasks.LimitsCheck", "test_ways.WaysOut")),
    "selinux": Variant("unified", boot="security=selinux", policy="selinux", checks=("test_selinux.Selinux",)),
    "hybrid": Variant(
        "hybrid",
        boot="systemd.unified_cgroup_hierarchy=0 syscall.x32=y",
        flavour="amd64",  # the cloud kernel has no x32
        programs=_EVERYWHERE + (_PROBE, Program("integration_seccomp", filter="LiveFilterTest.*"),
                                Program("integration_launcher_native", filter="-" + _ON_HOSTS_ONLY)) + _ATTACKED_LAUNCHES,
        checks=("test_attack.WholeSuite", "test_cells.Cells", "test_cells.X32", "test_probe.V1Probe", "test_probe.V1Delegate",
                "test_demo.Demo", "test_clean.Clean")),
    "legacy": Variant(
        "legacy",
        boot="systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=1",
        programs=_EVERYWHERE + (_PROBE,) + _ATTACKED_LAUNCHES,
        checks=("test_attack.WholeSuite", "test_cells.Cells", "test_probe.V1Probe", "test_probe.V1Delegate")),
    "starts": Variant(
        "unified",
        boot="tsc=reliable",  # it counts as the rest does
        checks=("test_starts.Starts",),
        files=("taskcell-bench", "taskcell-bench-floor"),
        counted=True,
        asked=True),
}
