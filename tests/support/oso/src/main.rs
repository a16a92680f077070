//! Takes one backup with OSO's crate: `oso_archive CONFIGURATION.json`.

use kafka_backup_core::backup::BackupEngine;
use kafka_backup_core::Config;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name the configuration")?;
    let config: Config = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    BackupEngine::new(config).await?.run().await?;
    Ok(())
}
