// Azure's own JavaScript clients, unmodified: each operation that they are promised, one after another.
// Where the service is, and who asks, comes from the environment that `forewarn env` tells.
import assert from "node:assert/strict";
import { ComputeManagementClient } from "@azure/arm-compute";
import { DefaultAzureCredential } from "@azure/identity";

const compute = new ComputeManagementClient(
  new DefaultAzureCredential(),
  process.env.AZURE_SUBSCRIPTION_ID,
  { endpoint: process.env.ARM_ENDPOINT },
);

async function all(pages) {
  const found = [];
  for await (const one of pages) found.push(one);
  return found;
}

async function step(name, work) {
  await work();
  console.log(name);
}

await step("list", async () => {
  const names = (await all(compute.virtualMachines.list("rg1"))).map((machine) => machine.name);
  assert.ok(names.includes("web-0"), names);
});
await step("instanceView", async () => {
  const view = await compute.virtualMachines.instanceView("rg1", "web-0");
  assert.equal(view.statuses.at(-1).code, "PowerState/running");
});
await step("restart", () => compute.virtualMachines.restart("rg1", "web-0"));
await step("redeploy", () => compute.virtualMachines.redeploy("rg1", "web-0"));
await step("performMaintenance", () => compute.virtualMachines.performMaintenance("rg1", "web-0"));
await step("powerOff", () => compute.virtualMachines.powerOff("rg1", "web-1"));
await step("start", () => compute.virtualMachines.start("rg1", "web-1"));
await step("deallocate", () => compute.virtualMachines.deallocate("rg1", "web-1"));
await step("start again", () => compute.virtualMachines.start("rg1", "web-1"));
await step("reapply", () => compute.virtualMachines.reapply("rg1", "web-1"));
await step("reimage", () => compute.virtualMachines.reimage("rg1", "web-1"));
await step("simulateEviction", () => compute.virtualMachines.simulateEviction("rg1", "cheap"));
await step("availability sets", async () => {
  await compute.availabilitySets.createOrUpdate("rg1", "made", {
    location: "local",
    platformUpdateDomainCount: 3,
    platformFaultDomainCount: 1,
  });
  const made = await compute.availabilitySets.get("rg1", "made");
  assert.equal(made.platformUpdateDomainCount, 3);
  await compute.availabilitySets.delete("rg1", "made");
});
await step("terminate notification", async () => {
  const changed = await compute.virtualMachineScaleSets.update("rg1", "ss1", {
    virtualMachineProfile: {
      scheduledEventsProfile: {
        terminateNotificationProfile: { enable: true, notBeforeTimeout: "PT7M" },
      },
    },
  });
  const profile = changed.virtualMachineProfile.scheduledEventsProfile;
  assert.equal(profile.terminateNotificationProfile.notBeforeTimeout, "PT7M");
});
await step("scale set restart", () =>
  compute.virtualMachineScaleSets.restart("rg1", "ss1", { vmInstanceIDs: { instanceIds: ["1"] } }));
await step("scale set instances", async () => {
  const found = await all(compute.virtualMachineScaleSetVMs.list("rg1", "ss1"));
  assert.deepEqual(found.map((one) => one.instanceId), ["0", "1", "2"]);
});
await step("instance restart", () => compute.virtualMachineScaleSetVMs.restart("rg1", "ss1", "0"));
await step("deleteInstances", () =>
  compute.virtualMachineScaleSets.deleteInstances("rg1", "ss1", { instanceIds: ["2"] }));
await step("instance eviction", () =>
  compute.virtualMachineScaleSetVMs.simulateEviction("rg1", "spots", "0"));
await step("not found", async () => {
  await assert.rejects(compute.virtualMachines.get("rg1", "nobody"), { code: "ResourceNotFound" });
});
